"""Are the weights those that were verified? Manifest, sizes and times of change, as the model store wrote them."""

from __future__ import annotations

from sparkloom.onnode.rank.order import Order
from sparkloom.onnode.weights.check import links
from sparkloom.onnode.weights.layout import COMMIT, Entry, Store

FIX = "run playbooks/models.yml"


def faults(order: Order) -> list[str]:
    """One sentence for the first fault of each model. Nothing is hashed here: the store did that on every node."""
    store = Store(order.store)
    sentences = [_model(store, model["id"], model.get("revision")) for model in order.weights] if order.store else []
    return [sentence for sentence in sentences if sentence]


def _model(store: Store, model: str, revision: str | None) -> str:
    commit = revision if revision and COMMIT.fullmatch(revision) else store.current(model)
    known = store.read(model, commit) if commit else None
    if known is None:
        return f"no verified weights of {model} at {commit or 'any revision'} in {store.root}; {FIX}"
    snapshot, times = known
    for entry in snapshot.files:
        if fault := _file(store, model, entry, times.get(entry.blob)):
            return f"weights of {model} at {snapshot.commit[:12]}: {fault}; {FIX}"
    wrong = links(store, snapshot)
    return f"weights of {model}: {wrong[0]}; {FIX}" if wrong else ""


def _file(store: Store, model: str, entry: Entry, verified: int | None) -> str:
    try:
        state = store.blob(model, entry).stat()
    except OSError:
        return f"{entry.path} is missing"
    if state.st_size != entry.size:
        return f"{entry.path} has {state.st_size} bytes, verified were {entry.size}"
    return "" if state.st_mtime_ns == verified else f"{entry.path} was changed after it was verified"
