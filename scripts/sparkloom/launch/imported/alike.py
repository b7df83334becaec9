"""Is the command that a profile makes the one that it was imported from: flag by flag, in the release's own reading."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from sparkloom.inputs.catalogs import argv
from sparkloom.inputs.catalogs.catalog import Catalog
from sparkloom.launch import engines
from sparkloom.launch.resolve import LaunchSketch
from sparkloom.launch.values import Origin, Setting


def compared(catalog: Catalog, source: Sequence[str], launch: LaunchSketch) -> dict[str, Any]:
    """What rank 0 is told beside the source's words, what it is told otherwise, and what of them it is not told."""
    ours = _oldest(launch.engine, flags(catalog, argv.without_entry(catalog, launch.ranks[0].argv)))
    theirs = _oldest(launch.engine, flags(catalog, source))
    why = {setting.name: setting.origin.why for setting in (*launch.settings, *launch.ranks[0].settings)}
    return {
        "added": {name: _why(name, why) for name in ours if name not in theirs},
        "changed": {name: [theirs[name], ours[name]] for name in theirs if name in ours and theirs[name] != ours[name]},
        "left_out": {name: value for name, value in theirs.items() if name not in ours},
    }


def _oldest(engine: str, table: dict[str, str]) -> dict[str, str]:
    """Under the engine's oldest names: a release's own spelling of a flag is no difference."""
    told = engines.get(engine)
    renamed: dict[str, str] = {}
    for name, value in table.items():
        key = name.lstrip("-").replace("-", "_")
        for oldest, meant in told.canonical([Setting(key, value, Origin(""))]).items():
            if name == "model" or oldest == key:
                renamed[name] = value
            else:
                renamed["--" + oldest.replace("_", "-")] = "true" if meant is True else str(meant)
    return renamed


def flags(catalog: Catalog, words: Sequence[str]) -> dict[str, str]:
    """A command line as a table: each flag's own name, and its value as the release reads it."""
    table: dict[str, str] = {}
    for part in argv.parts(catalog, words):
        if isinstance(part, argv.Stray):
            name, equals, attached = part.words[0].partition("=")
            if part.seat:
                table["model"] = part.words[0]
            elif name.startswith("-"):
                table[name.replace("_", "-")] = attached if equals else " ".join(part.words[1:])
            continue
        off = part.spelled in part.flag.off
        values = [_read(part, value, catalog) for value in part.values]
        table[part.flag.name] = ("false" if off else " ".join(values)) if part.flag.takes_value or off else "true"
    return table


def _read(use: argv.Use, text: str, catalog: Catalog) -> str:
    """One value under its one spelling: `0.80` is 0.8, and JSON has its keys in order."""
    try:
        value = use.flag.convert(text, catalog.dialect)
    except ValueError:
        return text
    return json.dumps(value, sort_keys=True) if isinstance(value, dict | list) else str(value)


def _why(name: str, why: dict[str, str]) -> str:
    return why.get(name.lstrip("-").replace("-", "_"), "")
