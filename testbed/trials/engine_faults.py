"""Faults of the engine on a node, as a small file beside its weights: the one folder that every rank sees anyway."""

from __future__ import annotations

import json
from dataclasses import asdict

from testbed.base import names
from testbed.base.shell import RackError, run
from testbed.beds.rack.faults import node
from testbed.standins.engine.standin.trouble import KINDS, parse

FOLDER = "/var/lib/sparkloom/hub"  # model_store of inventories/kind
FILE = f"{FOLDER}/.stand-in.json"

__all__ = ["KINDS", "add", "mend", "read"]


def add(where: str, kind: str, settings: list[str]) -> dict[str, list[str]]:
    """Writes one more fault for a node or for all; a fault of the same name is replaced."""
    try:
        entry = {name: value for name, value in asdict(parse(kind, settings)).items() if value != ""}
    except ValueError as problem:
        raise RackError(str(problem)) from None
    return {name: _write(box, [*_others(box, kind), entry]) for name, box in _nodes(where)}


def mend(where: str, kind: str | None = None) -> dict[str, list[str]]:
    return {name: _write(box, _others(box, kind) if kind else []) for name, box in _nodes(where)}


def read(container: str) -> list[dict[str, object]]:
    text = run(["docker", "exec", container, "sh", "-c", f"cat {FILE} 2>/dev/null || true"]).stdout
    entries: list[dict[str, object]] = json.loads(text or "[]")
    return entries


def _nodes(where: str) -> list[tuple[str, str]]:
    return list(names.NODES.items()) if where == "all" else [(where, node(where)[1])]


def _others(container: str, kind: str) -> list[dict[str, object]]:
    return [entry for entry in read(container) if entry["kind"] != kind]


def _write(container: str, entries: list[dict[str, object]]) -> list[str]:
    """Aside and renamed: a rank that reads at this moment sees all or nothing."""
    text = json.dumps(entries)
    done = f"mkdir -p {FOLDER} && cat > {FILE}.new <<'END'\n{text}\nEND\nmv {FILE}.new {FILE}"
    run(["docker", "exec", container, "sh", "-c", done if entries else f"rm -f {FILE}"])
    return [str(entry["kind"]) for entry in entries]
