"""One node's store of weights: asked, or filled. The store's program does it there, and is followed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sparkloom.launch.downloads import token
from sparkloom.render import pack
from sparkloom.site.ansible import Context, Data
from sparkloom.site.store import follow
from sparkloom.site.store.remote import BUILD, Remote

Asked = Mapping[str, Any]  # what the program reads on its standard input


def check(
    context: Context,
    asked: Asked,
    bring: bool = True,  # whether the program is brought; else it runs from memory and leaves no file
) -> Data:
    return {"answer": Remote.of(context, "weights").ask("check", dict(asked), bring=bring)}


def contents(context: Context, asked: Asked) -> Data:
    return {"answer": Remote.of(context, "weights").ask("list", dict(asked))}


def remove(context: Context, asked: Asked) -> Data:
    return {"answer": Remote.of(context, "weights").ask("remove", dict(asked))}


def begin(
    context: Context,
    asked: Asked,
    secret: str,  # what the nodes of this run prove to know
) -> Data:
    """On the first node: comes back once that knows what is to come; `fetch` then watches it."""
    remote = Remote.of(context, "weights")
    _start(remote, asked, secret, {})
    status = follow.listed(remote.node, lambda: dict(remote.ask("status")), context.say)
    failed = {"failed": True, "msg": follow.ended(remote.node, status)} if status["state"] in follow.LOST else {}
    return {"manifests": status.get("manifests", {}), **failed}


def fetch(
    context: Context,
    asked: Asked,
    secret: str,
    manifests: Mapping[str, str],  # model -> digest, as the first node's `begin` told
) -> Data:
    """Watches a node until its store is full; one that is not the first begins with it."""
    remote = Remote.of(context, "weights")
    if asked["source"]["kind"] == "peer":
        _start(remote, asked, secret, manifests)
    status = follow.follow(remote.node, lambda: dict(remote.ask("status")), context.say)
    text, done = follow.ended(remote.node, status), status["state"] == "done"
    if done:
        context.say(text)
    moved = status.get("moved", 0)
    rate = follow.measured(f"weights {asked['models'][0]['id']}", moved, status.get("seconds", 0)) if done else {}
    told = {"commits": status.get("commits", {}), "measured": rate}
    return {"failed": not done, "changed": moved > 0, "msg": text, **told}


def _start(remote: Remote, asked: Asked, secret: str, manifests: Mapping[str, str]) -> None:
    """All of it goes to the node on standard input alone."""
    source = dict(asked["source"])
    if source["kind"] == "hub":
        source |= {"client": remote.bring(pack.client(BUILD)), "token": token()}
    remote.ask("start", {**asked, "source": source, "secret": secret, "manifests": dict(manifests)})
