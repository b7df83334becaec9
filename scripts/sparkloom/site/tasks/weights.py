"""Which weights every node needs, and who hands them to whom: from the profile, and what `store` answered there."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Literal, TypedDict

from sparkloom.inputs import lock_file
from sparkloom.inputs import profile as profiles
from sparkloom.inputs.profile import LoadedProfile
from sparkloom.launch import downloads
from sparkloom.site import ansible
from sparkloom.site.ansible import Context, Data
from sparkloom.site.checks import serving
from sparkloom.site.store import locking

# Which commit holds where the nodes hold another than the locked one; new asks the hub again.
Accept = Literal["", "locked", "held", "new"]


class Settings(TypedDict):
    """How they are fetched."""

    endpoint: str  # another hub than the public one
    plain_http: Sequence[str]  # hosts that need not speak https
    folder: str  # a folder on the first node instead of a hub
    update: bool  # ask the hub again where no revision is pinned
    port: int  # where the nodes hand the weights on
    connections: int  # files that travel at once


def secret(context: Context) -> Data:
    """What the nodes of one run prove to each other that they know; nothing keeps it."""
    return {"secret": secrets.token_hex(32)}


def models(
    context: Context,
    profile: str,  # whose weights
    nodes: Sequence[str] = (),  # who serves it; the first Sparks unless told
    remove: Sequence[str] = (),  # models that are to go
    accept: Accept = "",
) -> Data:
    """What the profile needs."""
    _, loaded = _locked(context, profile, accept)
    wanted = downloads.wanted(loaded)
    downloads.removable(wanted, list(remove))
    return {"models": wanted, "nodes": _nodes(context, loaded, nodes), "store": context.cluster.model_store}


def contents(
    context: Context,
    answers: str,  # variable that the nodes registered from `store.contents`
) -> Data:
    """What lies on the nodes, compared."""
    told = ansible.registered(context.vars, answers)
    return {"msg": downloads.contents(locking.held(list(told), told, ansible.asked(context.vars)))}


def judge(
    context: Context,
    profile: str,
    checks: str,  # variable that the nodes registered from `store.check`
    nodes: Sequence[str] = (),
) -> Data:
    """Refuses nodes where something is missing."""
    _, loaded = _locked(context, profile)
    asked = ansible.asked(context.vars)
    here = [node for node in _nodes(context, loaded, nodes) if node in asked]
    findings = serving.weights(here, ansible.registered(context.vars, checks))
    return ansible.verdict(list(findings), f"verified on {', '.join(here)}")


def chain(
    context: Context,
    profile: str,
    checks: str,  # variable that the nodes registered from `store.check`
    settings: Settings,
    nodes: Sequence[str] = (),
    accept: Accept = "",
) -> Data:
    """Who fetches it, and who hands what to whom."""
    lock, loaded = _locked(context, profile, accept)
    serving_nodes = _nodes(context, loaded, nodes)
    held = locking.held(serving_nodes, ansible.registered(context.vars, checks), ansible.asked(context.vars))
    if refusal := lock.drift(held):
        return {"failed": True, "msg": refusal}
    how = downloads.Settings(**{**dict[str, Any](settings), "plain_http": tuple(settings["plain_http"])})
    specs = downloads.chain(context.cluster, downloads.wanted(loaded), list(held), held, how)
    return {"specs": specs, "head": next(iter(specs), ""), "msg": downloads.announcement(list(held), held, specs)}


def keep(
    context: Context,
    profile: str,
    checks: str,  # variable that the nodes registered from `store.check`
    fetched: str,  # variable that the nodes registered from `store.fetch`
    nodes: Sequence[str] = (),
    accept: Accept = "",
) -> Data:
    """Locks the commits that were verified, beside the images' digests."""
    lock, loaded = _locked(context, profile, accept)
    checked, brought = ansible.registered(context.vars, checks), ansible.registered(context.vars, fetched)
    found = {
        node: brought.get(node, {}).get("commits") or downloads.commits(checked[node]["answer"])
        for node in _nodes(context, loaded, nodes)
        if "answer" in checked.get(node, {})
    }
    entries, refusal = lock.found(found, datetime.now(UTC).isoformat(timespec="seconds"))
    changed = [lock_file.keep(lock.file, entry) for entry in entries if not context.dry]
    told = ", ".join(f"{entry.id} is {entry.commit} ({lock.file})" for entry in entries)
    return {"failed": bool(refusal), "changed": any(changed), "msg": refusal or told or "the profile pins it"}


def _locked(context: Context, profile: str, accept: str = "") -> tuple[locking.Lock, LoadedProfile]:
    own = profiles.load(profile)
    lock = locking.Lock.of(own, ansible.lock_file(context.vars), accept)
    return lock, lock.pinned(own)


def _nodes(context: Context, loaded: LoadedProfile, nodes: Sequence[str]) -> list[str]:
    return list(nodes) or downloads.nodes(loaded, context.cluster)
