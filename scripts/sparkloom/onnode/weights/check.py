"""Is a snapshot whole? By size and time of change when it was verified before; by sha256 where that differs."""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from sparkloom.onnode.weights.layout import Entry, Snapshot, Store, matches
from sparkloom.onnode.weights.names import StoreError, shown

PIECE = 4 << 20
FIX = "run playbooks/models.yml"
HASHERS = 4
# Another profile of the same model takes others of its weights: they may lie in the same snapshot. Code may not.
OTHERS = ["*.safetensors", "*.gguf"]


def check(store: Store, model: str, revision: str | None, *, deep: bool = False) -> dict[str, Any]:
    """What a node has of a model: `{id, commit, manifest, ok, problems, bytes}`; `manifest` is what all must share."""
    commit = store.commit(model, revision)
    here = store.current(model)
    answer: dict[str, Any] = {"id": model, "commit": commit, "manifest": "", "ok": False, "problems": []}
    answer |= {"bytes": 0, "files": 0, "current": here}
    known = store.read(model, commit) if commit else None
    if known is None:
        there = f"; here is {here}" if here and here != commit else ""
        wanted = commit or revision or "any revision"
        return answer | {"problems": [f"no verified snapshot of {model} at {wanted}{there}"]}
    snapshot, times = known

    def judged(entry: Entry) -> str:
        return fault(store.blob(snapshot.id, entry), entry, None if deep else times.get(entry.blob))

    with ThreadPoolExecutor(HASHERS) as pool:
        problems = [text for text in pool.map(judged, snapshot.files) if text]
    wrong = [] if problems else links(store, snapshot)
    return answer | {
        "manifest": snapshot.digest,
        "ok": not problems and not wrong,
        "problems": problems + wrong,
        "bytes": snapshot.size,
        "files": len(snapshot.files),
    }


def fault(blob: Path, entry: Entry, verified: int | None, *, hashed: bool = True) -> str:
    """Empty for a good one. `verified`: its time of change when it was; `hashed`: one with another time is read."""
    try:
        state = blob.stat()
    except OSError:
        return f"{entry.path} is missing"
    if state.st_size != entry.size:
        return f"{entry.path} has {state.st_size} bytes, expected {entry.size}"
    if verified is not None and state.st_mtime_ns == verified:
        return ""
    if not hashed:
        return f"{entry.path} was changed after it was verified"
    actual = sha256(blob)
    return "" if actual == entry.sha256 else f"{entry.path}: sha256 {actual}, expected {entry.sha256}"


def links(store: Store, snapshot: Snapshot) -> list[str]:
    """Names that engines open: they must lead to the verified content."""
    folder = store.snapshot(snapshot.id, snapshot.commit)
    wrong = [e.path for e in snapshot.files if (folder / e.path).resolve() != store.blob(snapshot.id, e).resolve()]
    faults = [f"{path}: its link does not lead to the verified file" for path in wrong]
    faults += [f"{shown(path)}: nobody verified it, and an engine may load it" for path in extra(folder, snapshot)]
    if store.link(snapshot.id).resolve() != folder.resolve() or store.current(snapshot.id) != snapshot.commit:
        faults.append(f"{snapshot.id} is at {store.current(snapshot.id)}, expected {snapshot.commit}")
    return faults


def extra(folder: Path, snapshot: Snapshot) -> list[str]:
    """What lies in the snapshot's folder and stands in no manifest: a module that a checkpoint's code imports, say."""
    known, found = {str(file.path) for file in snapshot.files}, []
    for place, folders, names in os.walk(folder):
        linked = [name for name in folders if os.path.islink(os.path.join(place, name))]  # noqa: PTH114, PTH118
        for name in names + linked:
            path = os.path.relpath(os.path.join(place, name), folder)  # noqa: PTH118
            if path not in known and (name in linked or not matches(path, OTHERS)):
                found.append(path)
    return sorted(found)


def unverified(root: str, models: Iterable[dict[str, Any]]) -> list[str]:
    """One sentence for the first fault of each model. Nothing is hashed here: the store did that on every node."""
    store = Store(root)
    try:
        faults = [_unverified(store, model["id"], model.get("revision")) for model in models]
    except StoreError as error:
        return [str(error)]
    return [fault for fault in faults if fault]


def _unverified(store: Store, model: str, revision: str | None) -> str:
    commit = store.commit(model, revision)
    known = store.read(model, commit) if commit else None
    if known is None:
        return f"no verified weights of {model} at {commit or 'any revision'} in {store.root}; {FIX}"
    snapshot, times = known
    for entry in snapshot.files:
        if wrong := fault(store.blob(model, entry), entry, times.get(entry.blob), hashed=False):
            return f"weights of {model} at {snapshot.commit[:12]}: {wrong}; {FIX}"
    bad = links(store, snapshot)
    return f"weights of {model}: {bad[0]}; {FIX}" if bad else ""


def sha256(path: Path) -> str:
    """The file's hash; what was read for it does not stay in memory, which the engine needs."""
    with path.open("rb", buffering=0) as file:
        return hashed(file)


def hashed(file: io.FileIO) -> str:
    digest, buffer = hashlib.sha256(), bytearray(PIECE)
    view = memoryview(buffer)
    while size := file.readinto(buffer):
        digest.update(view[:size])
    forget(file.fileno())
    return digest.hexdigest()


def forget(descriptor: int) -> None:
    """Drop a file's pages from memory. GPU and page cache share it, and a full cache stops a load at 90 %."""
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
