"""Writes a release's catalog: sorted, one flag per line, the same bytes every time."""

from __future__ import annotations

import json
from typing import Any

from . import describe
from .release import Release


def build(release: Release) -> dict[str, Any]:
    engine = release.engine
    return {
        "engine": release.name,
        "version": release.version,
        "source": f"the argument parser of the {release.name} {release.version} wheel, read by scripts/oracle",
        "entry": list(release.entry),
        "positionals": describe.positionals_of(engine.parser),
        "flags": describe.flags_of(engine.parser),
        "env": engine.environment(),
        "registries": engine.registries(),
    }


def dump(catalog: dict[str, Any]) -> str:
    """One line per flag, variable and registry, so that the difference of two releases reads as a list."""
    lines = []
    for key in ("engine", "version", "source", "entry", "positionals", "prefixes", "short_keys"):
        if key in catalog:
            lines.append(f"{_json(key)}: {_json(catalog[key])}")
    for key in ("programs", "registries", "flags", "env", "others"):
        if key not in catalog:
            continue
        rows = [f"{_json(name)}: {_json(facts)}" for name, facts in sorted(catalog[key].items())]
        lines.append(f"{_json(key)}: {{" + "".join("\n" + row + "," for row in rows)[:-1] + ("\n}" if rows else "}"))
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
