"""An engine that is not the official release: its release's catalog, and what the profile says that it takes beyond.

Nobody here ran the fork's parser, so what only `engine.fork` allows is let through and never silently: the flag check
names each flag (`fork-unchecked`), `assumed:` each value, and a launch shows it as the fork's own word.
"""

from __future__ import annotations

from typing import Any

from sparkloom.inputs.catalogs import releases
from sparkloom.inputs.catalogs.catalog import Catalog
from sparkloom.inputs.profile import Fork, Form, LoadedSketch
from sparkloom.launch import engines

UNCHECKED = "unchecked: the fork's own word"
FLAGS: dict[str, dict[str, Any]] = {
    "switch": {"action": "true"}, "text": {}, "int": {"type": "int"}, "float": {"type": "float"},
    "json": {"type": "json"},
}  # fmt: skip
VARIABLES = {"switch": "bool", "int": "int", "float": "float"}


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
