"""One folder per engine, and this door: an engine is known by its folder and asked for by its name."""

from __future__ import annotations

import json
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparkloom.base.errors import InputError, did_you_mean

if TYPE_CHECKING:  # who measures reads the folders' data only, and the memory of an engine only who plans
    from sparkloom.inputs.catalogs.catalog import Catalog
    from sparkloom.inputs.profile import FlagValue, LoadedSketch
    from sparkloom.launch.engines.base import Adapter, Memory
    from sparkloom.launch.memory.constants import Requirements
    from sparkloom.launch.memory.fit import Fit
    from sparkloom.launch.view import ModelView


@cache
def _folders(places: tuple[str, ...]) -> list[Path]:
    """Looked for once per place: every profile of a `lint` asks several times."""
    return sorted((file.parent for place in places for file in Path(place).glob("*/adapter.py")), key=lambda f: f.name)


def names() -> tuple[str, ...]:
    return tuple(folder.name for folder in _folders(tuple(__path__)))


@cache
def get(name: str) -> Adapter:
    adapter: Adapter = import_module(f"{__name__}.{name}.adapter").ADAPTER
    return adapter


def usual() -> str:
    """The one to begin with, where nobody's launch of a model is known."""
    return next(name for name in names() if get(name).usual)


def of(loaded: LoadedSketch) -> Adapter:
    """The engine that a profile asks for."""
    name = loaded.profile.engine.name
    if name not in names():
        message = f"engine.name: expected one of {', '.join(names())}, found '{name}'{did_you_mean(name, names())}"
        raise InputError([loaded.document.problem(("engine", "name"), message, "unknown-engine")])
    return get(name)


def programs() -> dict[str, tuple[tuple[str, ...], ...]]:
    """Of each engine the ways in which others' command lines begin that start it."""
    return {name: get(name).starts for name in names()}


def catalog(name: str, release: str) -> Catalog:
    """What a release of an engine accepts, read in that engine's dialect."""
    from sparkloom.inputs.catalogs.catalog import Catalog

    return Catalog.load(name, release, get(name).dialect)


def measured() -> list[dict[str, Any]]:
    """Where each engine tells of itself (`about`), and its gauges on /metrics; of those that do."""
    files = (folder / "measure.json" for folder in _folders(tuple(__path__)))
    return [json.loads(file.read_text()) for file in files if file.exists()]


def counters(name: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Of an engine's /metrics: the names of requests that run or wait, and of what changes while it computes."""
    file = Path(str(import_module(f"{__name__}.{name}").__file__)).with_name("measure.json")
    told = json.loads(file.read_text()) if file.exists() else {}
    requests = tuple(key for key, (ours, _) in told.get("gauges", {}).items() if ours in ("running", "queued"))
    return requests, tuple(told.get("moves", ()))


@cache
def _memory(name: str) -> Memory:
    memory: Memory = import_module(f"{__name__}.{name}.memory")
    return memory


def requirements(view: ModelView) -> Requirements:
    return _memory(view.engine).requirements(view)


def fit(view: ModelView) -> Fit:
    """Does it start, with how much cache, for how many requests; each engine by its own rules."""
    from dataclasses import replace  # bench, which loads this door for an engine's data, goes without

    needs, memory = requirements(view), _memory(view.engine)
    careful = memory.fit(view, needs)
    if careful.fits is not False:
        return careful
    hopeful = memory.fit(replace(view, hopeful=True), needs)
    return careful.in_doubt(hopeful, measured=view.platform.measured_free_gib is not None) if hopeful.fits else careful


def shared(view: ModelView, gib: float) -> tuple[ModelView, dict[str, FlagValue]]:
    """A launch that may take so much of each of its Sparks, and the flags that keep it there.

    It is judged as if nothing else were there than its share; an engine whose own figures depend on what others have
    taken says in its memory.py what it must be told instead.
    """
    from dataclasses import replace

    alone = replace(view, platform=replace(view.platform, measured_free_gib=(gib, gib)))
    asked = getattr(_memory(view.engine), "shared", None)
    told: dict[str, FlagValue] = asked(alone) if asked else {}
    return replace(alone, flags={**alone.flags, **told}), told


def sure(view: ModelView) -> bool:
    """Whether it fits with what is known at its worst."""
    return _memory(view.engine).fit(view, requirements(view)).fits is True
