"""A rule in YAML: where a trap is, which values spring it, and what to write instead (docs/write-a-rule.md).

The conditions are a closed set, each one plain word. A rule that has to compute is a class in Python.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from sparkloom.base import document
from sparkloom.inputs.families import Facts
from sparkloom.judge.rules import sources
from sparkloom.judge.rules.base import Hit, Hits, LaunchView, Releases, Rule, case, within
from sparkloom.launch.view import finite

# What may be asked of a launch beside `env.NAME`, `facts.NAME`, its flags, and `it`, which is what `at` names.
OF_A_LAUNCH = {
    "engine", "release", "architecture", "packing", "image", "built_from", "lacks", "nodes", "tp", "pp", "dp", "ep",
    "speculates", "nvfp4", "partial",
}  # fmt: skip
FACTS = {field.name for field in fields(Facts)}


def _listed(value: Any) -> Any:
    return value if isinstance(value, list) else [value]


def _asked(conditions: dict[str, Any]) -> dict[str, Any]:
    for name in conditions:
        if name.startswith("facts.") and name.removeprefix("facts.") not in FACTS:
            raise ValueError(f"no fact '{name}'; known are {', '.join(sorted(FACTS))}")
    return conditions


def _case(written: Any) -> LaunchView:
    try:
        sets = {name: frozenset(written[name]) for name in ("carries", "lacks") if name in written}
        return case(**{**written, **sets, "facts": Facts(**written.get("facts", {}))})
    except (AttributeError, TypeError) as error:
        raise ValueError(f"is no launch: {error}") from None


Several = Annotated[tuple[Any, ...], BeforeValidator(_listed)]
Words = Annotated[tuple[str, ...], BeforeValidator(_listed)]


class Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Condition(Part):
    """What a value must be; all parts that are given. A value alone, or a list of them, means `is`."""

    is_: Several | None = Field(None, alias="is")
    not_: Several | None = Field(None, alias="not")
    given: bool | None = None
    starts: Words | None = None
    contains: Words | None = None
    above: float | str | None = None  # a number, or the name of another value
    below: float | str | None = None
    within: Releases | None = None

    @model_validator(mode="before")
    @classmethod
    def _is(cls, written: Any) -> Any:
        return written if isinstance(written, dict) and written else {"is": written}

    def holds(self, value: Any, view: LaunchView) -> bool:
        return (
            (self.given is None or self.given is (value is not None))
            and (self.is_ is None or _among(value, self.is_))
            and (self.not_ is None or not _among(value, self.not_))
            and (self.starts is None or _plain(value or "").startswith(tuple(map(_plain, self.starts))))
            and (self.contains is None or any(_plain(word) in _plain(value or "") for word in self.contains))
            and (self.above is None or _less(_limit(self.above, view), _number(value)))
            and (self.below is None or _less(_number(value), _limit(self.below, view)))
            and (self.within is None or within(str(value), self.within))
        )


Conditions = Annotated[dict[str, Condition], AfterValidator(_asked)]


class Check(Part):
    """One way into the trap: all of `when` holds, and no part of `unless` holds whole."""

    when: Conditions = {}
    unless: tuple[Conditions, ...] = ()
    found: str  # {NAME} stands for that value, {it} for the one that `at` names, {name} for its name
    at: Words  # what the finding points at: a flag, env.NAME, engine.NAME, parallel; each of several is judged

    def hits(self, view: LaunchView) -> Hits:
        for name in self.at:
            if _hold(self.when, view, name) and not any(_hold(exception, view, name) for exception in self.unless):
                yield Hit(self._message(view, name), name)

    def _message(self, view: LaunchView, at: str) -> str:
        def value(word: re.Match[str]) -> str:
            return at.removeprefix("env.") if word[1] == "name" else _shown(_value(view, word[1], at))

        return re.sub(r"\{([\w.]+)\}", value, self.found)


class Trap(Rule, Part):
    """A rule as its file says it; the first check that holds is the finding."""

    checks: tuple[Check, ...] = Field(alias="check")
    evidence: Annotated[tuple[Any, ...], BeforeValidator(lambda written: tuple(map(sources.read, written)))]
    failing: Annotated[Any, BeforeValidator(_case)]
    passing: Annotated[Any, BeforeValidator(_case)]

    def check(self, view: LaunchView) -> Hits:
        return next((hits for check in self.checks if (hits := list(check.hits(view)))), ())


def load(path: Path) -> Trap:
    """The rule of one file; InputError names the line of what is wrong, which takes a slower reader to find."""
    try:
        return Trap.model_validate({"id": path.stem, **document.own(path.read_text(encoding="utf-8"))})
    except (yaml.YAMLError, TypeError, ValueError):
        written = document.load(path)
        written.data["id"] = path.stem
        return document.validate(Trap, written)


def _hold(conditions: Mapping[str, Condition], view: LaunchView, at: str) -> bool:
    return all(condition.holds(_value(view, name, at), view) for name, condition in conditions.items())


def _value(view: LaunchView, name: str, at: str = "") -> Any:
    """A value of a launch by its name in a rule; None where it is not given or not known."""
    name = at if name == "it" else name
    room, _, inner = name.partition(".")
    if room == "env":
        return view.env.get(inner)
    if room == "facts":
        return getattr(view.facts, inner)
    if name in OF_A_LAUNCH:
        return getattr(view, name)
    value: Any = view.flags.get(room)
    for key in inner.split(".") if inner else ():
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _plain(value: object) -> Any:
    """Text as it is compared: engines and NCCL read most words in any case."""
    return value.strip().lower() if isinstance(value, str) else value


def _among(value: object, wanted: Iterable[object]) -> bool:
    """True is not 1 here."""
    plain = _plain(value)
    return any(plain == _plain(one) and isinstance(plain, bool) is isinstance(one, bool) for one in wanted)


def _number(value: Any) -> float | None:
    return finite(int(value)) if isinstance(value, str) and value.isdigit() else finite(value)


def _limit(limit: float | str, view: LaunchView) -> float | None:
    return _number(_value(view, limit)) if isinstance(limit, str) else limit


def _less(left: float | None, right: float | None) -> bool:
    return left is not None and right is not None and left < right


def _shown(value: object) -> str:
    if value is None:
        return "not set"
    return f"{value:.0f}" if isinstance(value, float) else str(value)
