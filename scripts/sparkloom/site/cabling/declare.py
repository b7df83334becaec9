"""The fabric.yml of what was found: ports, speed and exceptions; everything else stays as the site has it."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.scalarstring import DoubleQuotedScalarString

from sparkloom.base import document, files
from sparkloom.base.errors import InputError
from sparkloom.inputs import inventory
from sparkloom.inputs.cluster import Cluster, Fabric
from sparkloom.inputs.inventory import DEFAULT_INVENTORY, folder_of
from sparkloom.site.cabling.shape import Found, barren, usual

KEPT = ".before"  # Ansible reads no such file
DEFAULT_GBIT: int = Fabric.model_fields["rail_gbit"].default


def path_of(inventory: Path) -> Path:
    return folder_of(inventory) / "group_vars" / "all" / "fabric.yml"


def rails(found: Found, told: list[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """One per half of the usual cage, named and addressed as the site says, with the nodes that differ."""
    common = usual(found.used)
    declared = []
    for number, half in enumerate(common.halves[: len(told)]):
        rail: dict[str, Any] = {
            "name": told[number]["name"],
            "pf": half["interface"],
            "pci": half["pci"],
            "subnet": told[number]["subnet"],
        }
        halves = {node: cage.half(half["pci"].partition(":")[0]) for node, cage in found.used.items()}
        there = {node: mine for node, mine in halves.items() if mine}
        if half in barren(found.used):
            rail["attach"] = "pf"
        others = {
            node: {"pf": mine["interface"], "pci": mine["pci"]}
            for node, mine in there.items()
            if (mine["interface"], mine["pci"]) != (half["interface"], half["pci"])
        }
        declared.append(rail | ({"ports": others} if others else {}))
    return declared


def fabric(found: Found, cluster: Cluster) -> dict[str, Any]:
    """What a fabric.yml says of cables, for an inventory of these Sparks; no rails for one alone."""
    if not found.used:
        return {"rails": []}
    told = cluster.fabric.rails or inventory.load(DEFAULT_INVENTORY).fabric.rails
    declared = rails(found, [{"name": rail.name, "subnet": rail.subnet} for rail in told])
    said = {} if found.rail_gbit == DEFAULT_GBIT else {"rail_gbit": found.rail_gbit}
    return {**said, **({"ring": list(found.ring)} if found.ring else {}), "rails": declared}


def lines(declared: Mapping[str, Any]) -> str:
    """`fabric` as somebody would type it."""
    styled = [{key: _styled(value) for key, value in rail.items()} for rail in declared["rails"]]
    stream = io.StringIO()
    document.edited().dump({"fabric": {**declared, "rails": styled}}, stream)
    return stream.getvalue()


def text(found: Found, before: str) -> str:
    """The whole file; comments and keys that are not about cables are kept, and what says the same already."""
    yaml = document.edited()
    content = yaml.load(before)
    said = content["fabric"]
    told = said.get("rails") or yaml.load(path_of(DEFAULT_INVENTORY).read_text())["fabric"]["rails"]
    wanted = rails(found, told)
    same = _turned(_plain(said.get("ring") or []), found.ring)
    if wanted == _plain(said.get("rails")) and same and found.rail_gbit == said.get("rail_gbit", DEFAULT_GBIT):
        return before
    if found.ring and not same:
        said["ring"] = CommentedSeq(found.ring)
        said["ring"].fa.set_flow_style()
    elif not found.ring:
        said.pop("ring", None)
    said["rails"] = told[: len(wanted)]
    for rail, values in zip(said["rails"], wanted, strict=True):
        for key in ("attach", "ports"):
            rail.pop(key, None)
        for key, value in values.items():
            if rail.get(key) != value:
                rail[key] = _styled(value)
    if found.rail_gbit != said.get("rail_gbit", DEFAULT_GBIT):
        said["rail_gbit"] = found.rail_gbit
    stream = io.StringIO()
    stream.write("---\n" if before.startswith("---\n") else "")
    yaml.dump(content, stream)
    return stream.getvalue()


def _turned(told: list[str], found: tuple[str, ...]) -> bool:
    """The same ring, from wherever it is told: who stands first gives the cables their numbers, and so the subnets."""
    return told == list(found) or tuple(told) in {(*found[turn:], *found[:turn]) for turn in range(len(found))}


def _plain(value: Any) -> Any:
    return json.loads(json.dumps(value))


def _styled(value: Any) -> Any:
    """Ports on one line, as the rails are; a PCI address in quotes, or Ansible reads 0000:01:00.0 as the number 60."""
    if isinstance(value, str):
        return DoubleQuotedScalarString(value) if ":" in value else value
    made = CommentedMap({key: _styled(inner) for key, inner in value.items()})
    made.fa.set_flow_style()
    return made


def write(found: Found, path: Path, *, dry: bool = False) -> bool:
    """Whether the file changed, or would; what it said before stays beside it."""
    try:
        before = path.read_text()
    except OSError as error:
        raise InputError.single(str(path), f"cannot be read: {error.strerror}", rule="missing-file") from None
    after = text(found, before)
    if after == before or dry:
        return after != before
    with files.writable(path, "it must be a file that you may write"):
        files.write(path.with_name(path.name + KEPT), before)
        files.write(path, after)
    return True
