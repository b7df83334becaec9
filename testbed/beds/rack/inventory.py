"""The inventory of this rack: inventories/kind, or for a rack with another name a copy with its names and places."""

from __future__ import annotations

from pathlib import Path

from testbed.base import names

KIND = names.REPO / "inventories/kind"


def path() -> Path:
    """Compared at every call: it differs from the original in names only."""
    if names.CLUSTER == "sparkloom":
        return KIND
    # two folders below the repository, as the original is: it names files by that
    copy = names.REPO / ".build" / f"kind-{names.CLUSTER}"
    for original in KIND.rglob("*.yml"):
        text = original.read_text().replace(".build/rack/", f".build/{names.STATE.name}/")
        for node in names.NODES.values():
            text = text.replace(node.replace(names.CLUSTER, "sparkloom", 1) + ",", node + ",")
        target = copy / original.relative_to(KIND)
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists() or target.read_text() != text:
            target.write_text(text)
    return copy
