"""What one engine release accepts: flags, variables, registries. Facts from its own parser (scripts/oracle).

`Catalog.load` is cheap: one small JSON file, read once per process, and a flag becomes an object when it is asked for.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any

from sparkloom.inputs.catalogs import flagtypes
from sparkloom.inputs.catalogs.flagtypes import PLAIN, Dialect
from sparkloom.inputs.catalogs.releases import FOLDER, Resolved, nearest

Named = Mapping[str, Mapping[str, Any]]  # what a file says of flags or variables, by their names


@dataclass(frozen=True, slots=True)
class Flag:
    """`action`: store, append (take a value); true, false, const, toggle, ignored, refused, exit (take none)."""

    name: str
    also: tuple[str, ...] = ()
    off: tuple[str, ...] = ()
    dest: str = ""
    action: str = "store"
    type: str = "str"
    optional: bool = False
    nargs: str | int | None = None
    choices: tuple[object, ...] = ()
    fields: tuple[str, ...] = ()
    required: bool = False
    default: object = None
    deprecated: bool = False
    replacement: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name, *self.also, *self.off)

    @property
    def takes_value(self) -> bool:
        return self.action in ("store", "append")

    @property
    def many(self) -> bool:
        return self.nargs in ("+", "*") or isinstance(self.nargs, int)

    @classmethod
    def read(cls, name: str, facts: Mapping[str, Any]) -> Flag:
        values: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value for key, value in facts.items()
        }
        retired = values.pop("deprecated", False)
        values.setdefault("dest", name.lstrip("-").replace("-", "_"))
        return cls(name, deprecated=bool(retired), replacement=retired if isinstance(retired, str) else None, **values)

    def convert(self, text: str, dialect: Dialect) -> object:
        """The typed value of one word. ValueError says what was expected."""
        if self.optional and text in ("", "None"):
            return None
        value = flagtypes.convert(self.type, text, dialect)
        if self.fields:
            flagtypes.check_keys(value, self.fields)
        if self.choices and value not in self.choices:
            raise ValueError(f"one of {', '.join(str(item) for item in self.choices)}")
        return value


@dataclass(frozen=True, slots=True)
class Variable:
    name: str
    type: str | None = None  # None: read somewhere in the release, declared nowhere
    default: object = None
    replacement: str | None = None
    deprecated: bool = False
    removed: bool = False  # the release reads it only to say that it is gone


@dataclass(frozen=True, eq=False)  # one object per release and process: compared by identity
class Catalog:
    engine: str
    version: str
    asked: Resolved
    dialect: Dialect
    source: str
    entry: tuple[str, ...]
    positionals: tuple[str, ...]
    prefixes: bool  # whether the engine takes an unambiguous prefix of a flag for the flag (argparse does)
    registries: Mapping[str, Any]
    programs: Mapping[str, tuple[str, ...]]  # where its image has each, by all names that builds gave it
    _flags: Named = field(repr=False)
    _env: Named = field(repr=False)
    _others: Mapping[str, Any] = field(repr=False)
    short_keys: bool = False  # whether `np` of a profile is -np: its adapter writes one dash

    @classmethod
    def load(cls, engine: str, version: str, dialect: Dialect = PLAIN) -> Catalog:
        """The catalog of this release, or of the nearest that has one; `asked.note` then says which."""
        return _load(engine, version, dialect)

    def of(self, version: str) -> Catalog:
        """The same engine's, of another release."""
        return _load(self.engine, version, self.dialect)

    def extended(self, flags: Named, env: Named, registries: Mapping[str, Any]) -> Catalog:
        """This release with what somebody's build takes beyond it, by the names and in the form of a catalog's file."""
        return replace(self, _flags={**self._flags, **flags}, _env={**self._env, **env}, registries=registries)

    def facts(self, name: str) -> dict[str, Any]:
        """What the file says of a flag, by its own name; empty where the release has none."""
        return dict(self._flags.get(name, {}))

    def flag(self, name: str) -> Flag | None:
        """By any spelling: `--tp-size`, `tp_size`, `np` of `-np`; a switch also by its turned-off name."""
        bare = name.removeprefix("--")
        tried = [name, f"--{bare}", f"--{bare.replace('_', '-')}", *([f"-{bare}"] if self.short_keys else [])]
        main = next((self.spellings[word] for word in tried if word in self.spellings), None)
        return _flag(self, main) if main else None

    def flags(self) -> Iterator[Flag]:
        return (_flag(self, name) for name in self._flags)

    @cached_property
    def spellings(self) -> Mapping[str, str]:
        """Every spelling, and the name under which the catalog keeps the flag."""
        return {
            spelling: name
            for name, facts in self._flags.items()
            for spelling in (name, *facts.get("also", ()), *facts.get("off", ()))
        }

    @cached_property
    def required(self) -> tuple[Flag, ...]:
        return tuple(_flag(self, name) for name, facts in self._flags.items() if facts.get("required"))

    def command(self, argv: Sequence[str]) -> Catalog:
        """This catalog, or the one of another program of the same release, as one that only lends memory."""
        program = argv[0].rsplit("/", 1)[-1] if argv else ""
        main = next((name for name, facts in self._others.items() if program in (name, *facts.get("also", ()))), None)
        return _other(self, main, program) if main else self

    def variable(self, name: str) -> Variable | None:
        facts = self._env.get(name)
        if facts is None:
            return None
        retired = facts.get("deprecated", False)
        replacement = retired if isinstance(retired, str) else None
        gone = bool(facts.get("removed", False))
        return Variable(name, facts.get("type"), facts.get("default"), replacement, bool(retired), gone)

    def variables(self) -> tuple[str, ...]:
        return tuple(self._env)


@lru_cache
def _load(engine: str, version: str, dialect: Dialect) -> Catalog:
    resolved = nearest(engine, version)
    data = _read(engine, resolved.version)
    return Catalog(
        engine=engine,
        version=resolved.version,
        asked=resolved,
        dialect=dialect,
        source=data["source"],
        entry=tuple(data["entry"]),
        positionals=tuple(data["positionals"]),
        prefixes=data.get("prefixes", True),
        registries=data["registries"],
        programs={name: tuple(paths) for name, paths in data.get("programs", {}).items()},
        _flags=data["flags"],
        _env=data["env"],
        _others=data.get("others", {}),
        short_keys=data.get("short_keys", False),
    )


@lru_cache
def _read(engine: str, version: str) -> Any:
    return json.loads((FOLDER / f"{engine}-{version}.json").read_text(encoding="utf-8"))


@lru_cache
def _other(catalog: Catalog, name: str, program: str) -> Catalog:
    facts = catalog._others[name]
    return replace(catalog, entry=(program,), positionals=(), registries={}, _flags=facts["flags"], _env={}, _others={})


@lru_cache(maxsize=4096)
def _flag(catalog: Catalog, name: str) -> Flag:
    return Flag.read(name, catalog._flags[name])
