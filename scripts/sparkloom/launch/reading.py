"""Flag values, read once: as the type that the engine's catalog gives the flag, whatever YAML made of the text.

An engine's own parser reads words, so `"0.85"` and `0.85` are one value to it; rules, plans and command lines must not
differ from it. What cannot be read stays as it was written: the flag check names its place.

A fork's catalog is its release's with what the profile says that it takes beyond. Nobody here ran the fork's parser, so
what only `engine.fork` allows is let through and never silently: the flag check names each flag (`fork-unchecked`),
`assumed:` each value, and a launch shows it as the fork's own word.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar, cast

from sparkloom.inputs.catalogs import argv, releases
from sparkloom.inputs.catalogs.catalog import Catalog
from sparkloom.inputs.catalogs.flagtypes import FlagError
from sparkloom.inputs.profile import Evidence, FlagValue, Fork, Form, LoadedSketch
from sparkloom.launch import engines

L = TypeVar("L", bound=LoadedSketch)
FREE_TEXT = frozenset({"str", "folded", "list", "lora"})  # types whose words the engine takes as they stand
UNCHECKED = "unchecked: the fork's own word"
FLAGS: dict[str, dict[str, Any]] = {
    "switch": {"action": "true"}, "text": {}, "int": {"type": "int"}, "float": {"type": "float"},
    "json": {"type": "json"},
}  # fmt: skip
VARIABLES = {"switch": "bool", "int": "int", "float": "float"}


def typed(loaded: L, release: str) -> L:
    """The same profile, its flags and those of its measured runs read by their types."""
    known = catalog(loaded, release)
    if known is None:
        return loaded
    profile = loaded.profile
    launch = profile.launch.model_copy()
    launch.__pydantic_extra__ = flags(known, profile.launch.flags)
    evidence = [_as_read(known, item) for item in profile.evidence]
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


def catalog(loaded: LoadedSketch, release: str) -> Catalog | None:
    """What the profile's engine takes; None where no release of it has a catalog."""
    engine, fork = engines.of(loaded), loaded.profile.engine.fork
    if not releases.known(engine.name):
        return None
    official = engines.catalog(engine.name, release)
    return extended(official, fork) if fork else official


def extended(official: Catalog, fork: Fork) -> Catalog:
    env = {name: {} if isinstance(form, list) else {"type": VARIABLES.get(form)} for name, form in fork.env.items()}
    registries = dict(official.registries)
    flags: dict[str, dict[str, Any]] = {}
    for key, form in fork.flags.items():
        known = official.flag(key)
        name = known.name if known else "--" + key.replace("_", "-")
        flags[name] = _facts(official, name, form)
        kept = registries.get(name.removeprefix("--"))
        if isinstance(kept, list | tuple):
            registries[name.removeprefix("--")] = [*kept, *form] if isinstance(form, list) else []
    return official.extended(flags, env, registries)


def _facts(official: Catalog, name: str, form: Form) -> dict[str, Any]:
    """The facts of a flag: those of its release with the fork's further words, or as the fork has it."""
    facts = official.facts(name)
    if isinstance(form, str):
        named: dict[str, Any] = {key: facts[key] for key in ("also", "dest") if key in facts}
        return {**named, **FLAGS[form]}
    if facts and not facts.get("choices"):
        return facts  # free text to the parser: only a registry may know the words
    whole = all(isinstance(word, int) and not isinstance(word, bool) for word in form)
    return {**({"type": "int"} if whole else {}), **facts, "choices": [*facts.get("choices", []), *form]}


def why(fork: Fork | None, name: str, *, variable: bool = False) -> str:
    """What stands beside a value that a fork brings; empty for all others."""
    return f"{UNCHECKED} ({fork.name})" if fork and name in (fork.env if variable else fork.flags) else ""
