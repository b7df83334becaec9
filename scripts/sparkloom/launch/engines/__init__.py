"""One folder per engine, and this door: an engine is known by its folder and asked for by its name."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING

from sparkloom.base.errors import InputError, did_you_mean
from sparkloom.inputs.catalogs.catalog import Catalog
from sparkloom.inputs.profile import LoadedProfile

if TYPE_CHECKING:  # the memory of an engine is read only when a plan is made
    from sparkloom.launch.engines.base import Adapter, Memory
    from sparkloom.launch.memory.fit import Fit
    from sparkloom.launch.memory.requirements import Requirements
    from sparkloom.launch.view import LaunchView


def names() -> tuple[str, ...]:
    return tuple(sorted(info.name for info in iter_modules(__path__) if info.ispkg))


@cache
def get(name: str) -> Adapter:
    adapter: Adapter = import_module(f"{__name__}.{name}.adapter").ADAPTER
    return adapter


def of(loaded: LoadedProfile) -> Adapter:
    """The engine that a profile asks for."""
    name = loaded.profile.engine.name
    if name not in names():
        message = f"engine.name: expected one of {', '.join(names())}, found '{name}'{did_you_mean(name, names())}"
        raise InputError([loaded.document.problem(("engine", "name"), message, "unknown-engine")])
    return get(name)


def catalog(name: str, release: str) -> Catalog:
    """What a release of an engine accepts, read in that engine's dialect."""
    return Catalog.load(name, release, get(name).dialect)


@cache
def _memory(name: str) -> Memory:
    memory: Memory = import_module(f"{__name__}.{name}.memory")
    return memory


def requirements(view: LaunchView) -> Requirements:
    return _memory(view.engine).requirements(view)


def fit(view: LaunchView) -> Fit:
    """Does it start, with how much cache, for how many requests; each engine by its own rules."""
    return _memory(view.engine).fit(view, requirements(view))
