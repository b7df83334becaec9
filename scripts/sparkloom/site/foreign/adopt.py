"""What is changed on a node when its own definitions of the rails are taken over: files, and addresses in no file.

A file keeps what is not about the rails. One that had nothing else goes; the node keeps how each of them was.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import yaml

from sparkloom.site.foreign.definition import Definition
from sparkloom.site.foreign.judge import claims
from sparkloom.site.foreign.netplan import SECTIONS, network
from sparkloom.site.foreign.node import Node

NOTE = "# The rails of this file were taken over by sparkloom (fabric_adopt); playbooks/teardown.yml gives it back.\n"


def changes(node: Node) -> dict[str, Any]:
    """`files`: path and new content, none for a file that goes; `addresses`: interface and cidr to take away."""
    taken = [claim for claim in claims(node) if claim.adoptable and not claim.warns]
    definitions = list(dict.fromkeys(claim.definition for claim in taken if claim.definition))
    live = dict.fromkeys(claim.live for claim in taken if claim.live)
    texts = {file["path"]: file["text"] for file in node.network["files"]}
    paths = dict.fromkeys(path for definition in definitions for path in definition.files)
    return {
        "files": [{"path": path, "content": _without(path, texts[path], definitions)} for path in paths],
        "addresses": [{"interface": name, "cidr": cidr} for name, cidr in [*live, *_of_files(node, definitions)]],
    }


def _of_files(node: Node, definitions: Iterable[Definition]) -> list[tuple[str, str]]:
    """A port that loses its file keeps its addresses until somebody takes them."""
    written = {cidr for definition in definitions for cidr, _ in definition.addresses}
    live = [(name, cidr) for name, link in node.links.items() for cidr in link["addresses"] if cidr in written]
    return [entry for entry in live if entry not in node.planned and entry[0] not in node.management]


def _without(path: str, text: str, definitions: Iterable[Definition]) -> str | None:
    mine = [definition for definition in definitions if path in definition.files]
    if any(definition.kind != "netplan" for definition in mine):
        return None
    data = network(text)
    for definition in mine:
        data[definition.section].pop(definition.name)
    for section in SECTIONS:
        if section in data and not data[section]:
            del data[section]
    if not set(data) - {"version"}:
        return None
    return NOTE + yaml.safe_dump({"network": data}, sort_keys=False)
