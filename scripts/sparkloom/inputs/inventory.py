"""Reads an inventory: the machines, their addresses and the rails between them.

`load(folder)` reads the plain data that the package needs out of an Ansible inventory folder; Ansible
itself reads the same files. `from_vars()` takes what an action plugin hands over, already resolved.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sparkloom.base import document
from sparkloom.base.document import Document
from sparkloom.base.errors import InputError
from sparkloom.base.repository import REPO
from sparkloom.inputs import addressing, lock_file
from sparkloom.inputs.cluster import Cluster, Node, Server

DEFAULT_INVENTORY = REPO / "inventories" / "gb10"
GROUP = "sparks"
SERVERS = "k3s_servers"  # Sparks or other machines; the first Spark where the group is empty


def folder_of(named: str | Path) -> Path:
    """The inventory's folder, also by the hosts.yml in it."""
    path = Path(named)
    return path.parent if path.name == "hosts.yml" else path


def load(folder: str | Path | None = None) -> Cluster:
    """Cluster of an inventory folder (or of its hosts.yml); the shipped gb10 example when none is given."""
    path = folder_of(folder) if folder else DEFAULT_INVENTORY
    if not os.path.isdir(path):  # noqa: PTH112 - False of a name that no file system takes
        message = "no such inventory folder; inventories/gb10 is the one to copy"
        raise InputError.single(str(path), message, rule="missing-file")
    return _validated(_gather(path))


def require_own(example: str) -> None:
    """Asked before anything connects: an example's addresses are a stranger's. `example`: the file that marks it."""
    if example:
        message = (
            "`example: true`: nothing connects to these addresses; `sparkloom init NAME` writes a site of yours "
            "(-i names it), and a copy of yours goes without that line"
        )
        raise InputError.single(example, message, rule="example")


def shipped(folder: Path) -> bool:
    """Whether it came with Sparkloom: then `example:` says whether nothing connects there, or the test bed does."""
    file = folder / "group_vars" / "all" / "cluster.yml"
    return file.is_file() and "example" in document.load(file).data


def from_vars(variables: Mapping[str, Any]) -> Cluster:
    """Cluster from `{cluster: {...}, fabric: {...}, nodes: [{name, ...}]}` as an action plugin passes it.

    With `serve`, the list of a site with several groups, where it has one.
    """
    data = {
        **dict(variables["cluster"]),
        "fabric": variables["fabric"],
        "nodes": [_ours(node, Node, fabric_index=index) for index, node in enumerate(variables["nodes"], 1)],
        "servers": [_ours(server, Server) for server in variables.get("servers", [])],
        "several": variables.get("serve") is not None,
        "images": dict(variables.get("images", {})),
        "models": dict(variables.get("models", {})),
    }
    return _validated(Document("inventory variables", data))


def _validated(source: Document) -> Cluster:
    cluster = document.validate(Cluster, source)
    faults = addressing.faults(cluster)
    if faults:
        raise InputError([source.problem(fault.loc, str(fault), "fabric") for fault in faults])
    return cluster if len(cluster.nodes) > 1 else _alone(cluster)


def _alone(cluster: Cluster) -> Cluster:
    """A rail leads to another node: one Spark has none, whatever the shipped fabric.yml says."""
    return cluster.model_copy(update={"fabric": cluster.fabric.model_copy(update={"rails": []})})


def _gather(folder: Path) -> Document:
    if not (folder / "hosts.yml").exists():
        message = "no hosts.yml in this folder, so it is no inventory; `sparkloom init NAME` writes one"
        raise InputError.single(str(folder), message, rule="missing-file")
    hosts = document.load(folder / "hosts.yml")
    group_vars = folder / "group_vars" / "all"
    merged = Document(str(folder), {})
    targets: dict[str, document.Loc] = {"cluster": (), "fabric": ("fabric",)}
    listed = False
    for part, target in targets.items():
        read = document.load(group_vars / f"{part}.yml")
        if not isinstance(read.data.get(part), dict):
            raise InputError.single(read.file, f"expected a mapping '{part}:'", rule="missing-key")
        _graft(merged, read, (part,), target)
        merged.data |= {part: read.data[part]} if target else read.data[part]
        listed |= read.data.get("serve") is not None
        if read.data.get("example"):
            merged.data["example"] = read.file
    merged.data["nodes"] = _hosts(hosts, merged)
    merged.data["servers"] = _servers(hosts)
    merged.data["several"] = listed
    locked = lock_file.place(folder)
    merged.data["images"] = lock_file.meanings(locked, lock_file.Image)
    merged.data["models"] = lock_file.meanings(locked, lock_file.Model)
    return merged


def _graft(merged: Document, read: Document, source: document.Loc, target: document.Loc) -> None:
    for loc, mark in read.marks.items():
        if loc[: len(source)] == source:
            new = (*target, *loc[len(source) :])
            merged.marks[new] = mark
            merged.files[new] = read.file


def _hosts(hosts: Document, merged: Document) -> list[dict[str, Any]]:
    loc: document.Loc = ("all", "children", GROUP, "hosts")
    node: Any = hosts.data
    for part in loc:
        node = node.get(part) if isinstance(node, dict) else None
    if not isinstance(node, dict) or not node:
        message = f"no hosts under all.children.{GROUP}.hosts; list your Sparks there"
        raise hosts.refusal(("all",), message, "missing-key")
    for index, name in enumerate(node):
        _graft(merged, hosts, (*loc, name), ("nodes", index))
    named = ({"name": name, **(values or {})} for name, values in node.items())
    return [_ours(values, Node, fabric_index=index) for index, values in enumerate(named, 1)]


def _servers(hosts: Document) -> list[dict[str, Any]]:
    """The group k3s_servers; a Spark's own variables stand in the group of the Sparks."""
    groups = hosts.data["all"]["children"]
    sparks = groups[GROUP]["hosts"]
    listed = (groups.get(SERVERS) or {}).get("hosts") or {}
    named = ({"name": name, **(sparks.get(name) or {}), **(values or {})} for name, values in listed.items())
    return [_ours(values, Server) for values in named]


def _ours(values: Mapping[str, Any], kind: type[Node | Server], **usual: Any) -> dict[str, Any]:
    """The few host variables that are ours; Ansible's own (ansible_*) stay Ansible's."""
    own = {name: values[name] for name in kind.model_fields if name in values}
    return {"kubernetes_node": values["name"], **usual, **own}
