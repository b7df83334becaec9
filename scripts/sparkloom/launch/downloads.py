"""Which checkpoints a profile needs, and the chain in which the nodes hand them on."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from sparkloom.base.errors import InputError
from sparkloom.inputs.cluster import Cluster
from sparkloom.inputs.profile import LoadedProfile
from sparkloom.launch import fabric

# What publishers put beside the weights that engines load: the same weights in another form.
ELSEWHERE = ["original/*", "*.pth", "*.pt", "*.bin", "*.onnx", "*.h5", "*.msgpack", "*.gguf", "metal/*"]
SIZES = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"))


@dataclass(frozen=True, slots=True)
class Settings:
    port: int
    connections: int
    endpoint: str = ""
    folder: str = ""  # import from here instead of the hub
    update: bool = False
    plain_http: tuple[str, ...] = ()  # hosts that need not speak https


def wanted(loaded: LoadedProfile) -> list[dict[str, Any]]:
    """The model, and the draft model where speculation has one."""
    model = loaded.profile.model
    checkpoints = [{"id": model.id, "revision": model.revision, **_patterns(model.file)}]
    if model.draft:
        checkpoints.append({"id": model.draft.id, "revision": model.draft.revision, **_patterns(None)})
    return checkpoints


def _patterns(file: str | None) -> dict[str, list[str]]:
    if file is None:
        return {"include": ["*"], "exclude": ELSEWHERE}
    return {"include": [re.sub(r"-\d{5}-of-(\d{5})\.", r"-?????-of-\1.", file), "config.json"], "exclude": []}


def nodes(loaded: LoadedProfile, cluster: Cluster) -> list[str]:
    """The nodes that will read the weights, in rank order."""
    return [node.name for node in cluster.nodes[: loaded.profile.launch.parallel.nodes]]


def addresses(cluster: Cluster, node: str, asking: str = "") -> list[str]:
    """The node's own ends of the rails: the functions that stay on the host while pods hold the others.

    Nodes without rails hand weights on over the management network. `asking`: who must reach them; in a ring that is
    by one of the two cables.
    """
    if not cluster.fabric.rails:
        return [given for each in cluster.nodes if each.name == node and (given := each.management_address)]
    shared = {rail.name for rail in cluster.fabric.segments if not asking or rail.joins(asking)}
    ends = fabric.plan(cluster).at_host()
    return [endpoint.address for endpoint in ends if endpoint.node == node and endpoint.rail in shared]


def complete(answers: Sequence[Mapping[str, Any]]) -> bool:
    return bool(answers) and all(answer["ok"] for answer in answers)


def chain(
    cluster: Cluster,
    models: list[dict[str, Any]],
    order: Sequence[str],
    checks: Mapping[str, Sequence[Mapping[str, Any]]],
    settings: Settings,
) -> dict[str, dict[str, Any]]:
    """What each node is told; empty when all have the same whole snapshots. A node that has all hands on first.

    The same is the same manifest, not the same commit: a commit is only a name that a node gives to its files.
    """
    have = [] if settings.update else [node for node in order if complete(checks[node])]
    same = [node for node in have if manifests(checks[node]) == manifests(checks[have[0]])]
    lacking = [node for node in order if node not in same]
    if not lacking:
        return {}
    if same:
        head, source = same[0], {"kind": "own"}
        models = [{**m, "revision": commits(checks[head])[m["id"]]} for m in models]
    else:
        head, source = lacking.pop(0), _source(settings)
    line = [head, *lacking]
    job = hashlib.sha256(json.dumps([models, line, settings.folder]).encode()).hexdigest()[:16]
    specs: dict[str, dict[str, Any]] = {}
    for place, node in enumerate(line):
        specs[node] = {
            "job": job,
            "store": cluster.model_store,
            "models": models,
            "source": source if place == 0 else _peer(cluster, line[place - 1], node, settings),
            "listen": addresses(cluster, node),
            "peers": [] if node == line[-1] else addresses(cluster, line[place + 1]),
            "port": settings.port,
            "connections": settings.connections,
            "downstream": node != line[-1],
        }
    return specs


def _source(settings: Settings) -> dict[str, Any]:
    if settings.folder:
        return {"kind": "folder", "path": settings.folder}
    if settings.endpoint:
        _endpoint(settings)
    return {"kind": "hub", "endpoint": settings.endpoint, "plain_http": list(settings.plain_http)}


def _endpoint(settings: Settings) -> None:
    """Code and weights come from there, and a token goes there."""
    try:
        parts = urlsplit(settings.endpoint)
        host = parts.hostname
    except ValueError:
        parts, host = urlsplit(""), None
    where = "model_store_endpoint (HF_ENDPOINT)"
    if not host or parts.scheme not in {"http", "https"} or parts.username or parts.query or parts.fragment:
        message = f"'{settings.endpoint}' is no address of a hub; write one as https://hub.example.org"
        raise InputError.single(where, message, rule="hub-address")
    if parts.scheme != "https" and host not in settings.plain_http:
        found = f"'{settings.endpoint}' is not https"
        harm = "anybody between could change the model's code and read your token"
        cure = f"write https://, or say in the inventory that this host may: model_store_plain_http: [{host}]"
        raise InputError.single(where, f"{found}: {harm}; {cure}", rule="hub-plain-http")


def _peer(cluster: Cluster, node: str, asking: str, settings: Settings) -> dict[str, Any]:
    return {"kind": "peer", "name": node, "addresses": addresses(cluster, node, asking), "port": settings.port}


def commits(answers: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    return {answer["id"]: answer["commit"] for answer in answers}


def manifests(answers: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Model -> digest of its verified manifest, which every file's sha256 is part of."""
    return {answer["id"]: answer["manifest"] for answer in answers}


def disagreeing(checks: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, str]:
    """Node -> a sentence, of those that hold other files than the first whole one under the same commit."""
    whole = {node: answers for node, answers in checks.items() if complete(answers)}
    first = next(iter(whole), "")
    return {
        node: f"its manifest of {row['id']} at {row['commit'][:12]} is another than {first}'s: its files differ"
        for node, answers in whole.items()
        for row, other in zip(answers, whole[first], strict=False)
        if row["commit"] == other["commit"] and row["manifest"] != other["manifest"]
    }


def token() -> str:
    """The person's own token for the hub: HF_TOKEN, or what `hf auth login` keeps. It goes into the download only."""
    from huggingface_hub import get_token

    return get_token() or ""


def announcement(
    order: Sequence[str], checks: Mapping[str, Sequence[Mapping[str, Any]]], specs: Mapping[str, Mapping[str, Any]]
) -> str:
    """What a person reads before anything moves."""
    if not specs:
        rows = checks[order[0]]
        what = ", ".join(f"{row['id']} at {row['commit'][:12]} ({amount(row['bytes'])})" for row in rows)
        return f"{what}: verified on {', '.join(order)}; nothing to move"
    lines = [f"{node}: {text}" for node in order for row in checks[node] for text in row["problems"]]
    lines += [f"{node}: {text}" for node, text in disagreeing(checks).items()]
    line = list(specs)
    source = specs[line[0]]["source"]
    first = {"hub": "the hub", "folder": source.get("path", ""), "own": "what it has"}[source["kind"]]
    return "\n".join([*lines, f"what is missing or wrong comes now: {first} -> {' -> '.join(line)}"])


def contents(answers: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """Every store's snapshots, one line each."""
    lines = []
    for node, rows in answers.items():
        for row in rows:
            older = "" if row["current"] else "  not used by name"
            lines.append(f"{node}  {amount(row['bytes']):>10}  {row['id']} at {row['commit'][:12]}{older}")
        lines += [] if rows else [f"{node}  nothing verified"]
    return "\n".join(lines)


def removable(models: Sequence[Mapping[str, Any]], asked: Sequence[str]) -> None:
    """What the profile of this site serves is not taken away under it."""
    needed = sorted({str(model["id"]) for model in models} & set(asked))
    if needed:
        message = f"{', '.join(needed)} is what the profile of this site serves"
        cure = "change `profile` in group_vars/all/cluster.yml first"
        raise InputError.single("model_store_remove", f"{message}; {cure}", rule="model-in-use")


def amount(size: float) -> str:
    for unit, name in SIZES:
        if size >= unit:
            return f"{size / unit:.1f} {name}"
    return f"{size:.0f} bytes"
