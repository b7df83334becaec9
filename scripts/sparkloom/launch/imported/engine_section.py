"""The engine of an imported launch: its image, its release, and what its author's fork takes beyond that."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sparkloom.inputs.catalogs import environment as catalogued
from sparkloom.inputs.importers import Leftovers, Started, short, theirs
from sparkloom.launch import engines
from sparkloom.launch.imported import spoken
from sparkloom.launch.imported.command import Said


def environment(
    start: Started, told: spoken.Spoken, forked: bool, own: Mapping[str, str], exported: bool, leftover: Leftovers
) -> tuple[dict[str, str], list[str]]:
    """The profile's variables, and which of them only a fork can know."""
    env = {}
    for name, value in start.env.items():
        if own.get(name) == value:
            continue  # sparkloom's own, as it wrote it
        why = "" if exported else engines.get(start.engine).sited_env.get(name) or theirs.of_their_machine(name)
        if why:
            leftover.add(f"env {name}={short(value)}", why)
        else:
            env[name] = value
    assert told.catalog is not None
    unknown = [p.flag for p in catalogued.check(told.catalog, env) if p.kind in ("unknown", "type")] if forked else []
    return env, unknown


def of(
    start: Started,
    told: spoken.Spoken,
    kept: Mapping[str, Any],
    said: Said,
    foreign: list[str],
    leftover: Leftovers,
) -> dict[str, Any]:
    image, _, digest = start.image.partition("@")
    adapter = engines.get(start.engine)
    if not image:
        image = str(kept.get("image") or adapter.published.format(release=told.release))
        if not kept:
            leftover.add("(no image)", f"none is named; {image} is written, the project's own of that release")
    engine: dict[str, Any] = {**kept, "name": start.engine, "release": told.release, "image": image}
    engine.pop("digest", None)
    if digest:
        engine["digest"] = digest
    if (said.fork or foreign) and not kept:
        engine["fork"] = (
            {
                "name": image.rpartition("/")[2].partition(":")[0] or "unnamed",
                "source": f"image {image}; what it takes beyond {start.engine} {told.release} is its author's word",
            }
            | ({"flags": said.fork} if said.fork else {})
            | ({"env": dict.fromkeys(foreign, "text")} if foreign else {})
        )
    return engine
