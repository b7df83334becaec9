"""Flag values, read once: as the type that the engine's catalog gives the flag, whatever YAML made of the text.

An engine's own parser reads words, so `"0.85"` and `0.85` are one value to it; rules, plans and command lines must not
differ from it. What cannot be read stays as it was written: the flag check names its place.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar, cast

from sparkloom.inputs.catalogs import argv, releases
from sparkloom.inputs.catalogs.catalog import Catalog
from sparkloom.inputs.catalogs.dialect import FlagError
from sparkloom.inputs.profile import Evidence, FlagValue, LoadedSketch
from sparkloom.launch import forks

L = TypeVar("L", bound=LoadedSketch)
FREE_TEXT = frozenset({"str", "folded", "list", "lora"})  # types whose words the engine takes as they stand


def typed(loaded: L, release: str) -> L:
    """The same profile, its flags and those of its measured runs read by their types."""
    catalog = forks.catalog(loaded, release)
    if catalog is None:
        return loaded
    profile = loaded.profile
    launch = profile.launch.model_copy()
    launch.__pydantic_extra__ = flags(catalog, profile.launch.flags)
    evidence = [_as_read(catalog, item) for item in profile.evidence]
    return replace(loaded, profile=profile.model_copy(update={"launch": launch, "evidence": evidence}))


def flags(catalog: Catalog, given: Mapping[str, FlagValue]) -> dict[str, FlagValue]:
    return {name: value(catalog, name, written) for name, written in given.items()}


def value(catalog: Catalog, name: str, written: FlagValue) -> FlagValue:
    """One value; a flag of another release is read by that one's catalog, since an adapter may translate it."""
    if isinstance(written, bool | dict | None):
        return written
    known = _knowing(catalog, name)
    flag = known.flag(name) if known else None
    if known is None or flag is None or not flag.takes_value or flag.type in FREE_TEXT:
        return written
    try:
        return cast("FlagValue", argv.coerce(known, name, written))
    except FlagError:
        return written


def _knowing(catalog: Catalog, name: str) -> Catalog | None:
    if catalog.flag(name) is not None:
        return catalog
    others = (catalog.of(release) for release in reversed(releases.known(catalog.engine)))
    return next((other for other in others if other.flag(name) is not None), None)


def _as_read(catalog: Catalog, item: Evidence) -> Evidence:
    config: dict[str, Any] | None = item.config
    return item.model_copy(update={"config": flags(catalog, config)}) if config else item
