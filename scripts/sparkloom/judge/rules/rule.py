"""A rule: one file that says where a trap is, what springs it and what to write instead (docs/write-a-rule.md).

The conditions are a closed set, each one plain word. What they cannot say is a function in `computed/`, which the file
names. `failing` and `passing` are one launch each and are run as tests.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, Self

import yaml
from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from sparkloom.base import document
from sparkloom.base.finding import Severity
from sparkloom.inputs.families import Facts
from sparkloom.inputs.image_recipes import Recipe
from sparkloom.judge.rules.base import Hit, Hits, LaunchView, Part, Releases, Scope, Source, case, within
from sparkloom.judge.rules.computed import images, parallel, settings
from sparkloom.launch.view import finite

NAMED = Path(__file__).parents[1] / "data" / "sources.yml"
# What may be asked of a launch beside `env.NAME`, `facts.NAME`, its flags, and `it`, which is what `at` names.
OF_A_LAUNCH = {
    "engine", "release", "architecture", "packing", "image", "built_from", "lacks", "nodes", "tp", "pp", "dp", "ep",
    "speculates", "nvfp4", "partial", "egress",
}  # fmt: skip
COMPUTED = {"images": images, "parallel": parallel, "settings": settings}
SETS = ("carries", "lacks", "moving", "consented")
READ: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(SETS, frozenset),
    "facts": lambda facts: Facts(**facts),
    "recipe": Recipe.model_validate,
}
FACTS = {field.name for field in fields(Facts)}
SOURCES = {name: Source(**said) for name, said in document.own(NAMED.read_text()).items()}


def _listed(value: Any) -> Any:
    return value if isinstance(value, list) else [value]


def _asked(conditions: dict[str, Any]) -> dict[str, Any]:
    for name in conditions:
        if name.startswith("facts.") and name.removeprefix("facts.") not in FACTS:
            raise ValueError(f"no fact '{name}'; known are {', '.join(sorted(FACTS))}")
    return conditions


def _function(name: str) -> Any:
    module, _, function = name.partition(".")
    if module not in COMPUTED or not hasattr(COMPUTED[module], function):
        raise ValueError(f"no function '{name}' in judge/rules/computed; write MODULE.FUNCTION")
    return getattr(COMPUTED[module], function)


def _case(written: Any) -> LaunchView:
    try:
        parts = {name: READ[name](part) if name in READ else part for name, part in written.items()}
        return case(**parts)
    except (AttributeError, TypeError) as error:
        raise ValueError(f"is no launch: {error}") from None


def _source(written: Any) -> Source:
    """A source as a rule in YAML says it: a name from above, `rows: ...`, `code: ...`, or what, date and link."""
    match written:
        case str() if written in SOURCES:
            return SOURCES[written]
        case {"rows": str(what)} if len(written) == 1:
            return Source(f"measured rows: {what}", "2026")  # `sparkloom evidence find` shows them
        case {"code": str(what)} if len(written) == 1:
            return Source(f"read in the engine's released code: {what}", "2026-11")
        case {"what": str()} if set(written) <= {"what", "date", "link"}:
            return Source(**written)
    raise ValueError(f"'{written}' is no source: write {', '.join(SOURCES)}, rows:, code:, or what:, date: and link:")


Several = Annotated[tuple[Any, ...], BeforeValidator(_listed)]
Words = Annotated[tuple[str, ...], BeforeValidator(_listed)]


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
        if written is None:
            raise ValueError("says nothing; write a value, or {given: false} where none may be")
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

    when: Conditions = Field(default={})
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


class Rule(Part):
    id: str  # the file's name
    severity: Severity
    scope: Scope
    checks: tuple[Check, ...] = Field((), alias="check")
    computed: Annotated[Callable[[LaunchView], Hits] | None, BeforeValidator(_function)] = None
    why: str
    fix: str
    evidence: Annotated[tuple[Any, ...], BeforeValidator(lambda written: tuple(map(_source, written)))]
    log_pattern: str | None = None  # what an engine log says when this trap was sprung
    ends: bool = True  # a start; false: it goes on after what log_pattern finds, which causes no later failure
    predicts_failure: bool = True  # an error that a measured run would have shown (not a question of taste)
    ours: bool = False  # an error that the engine would start with: Sparkloom refuses it for its owner's sake
    failing: Annotated[Any, BeforeValidator(_case)]
    passing: Annotated[Any, BeforeValidator(_case)]

    @model_validator(mode="after")
    def _one_way_to_check(self) -> Self:
        if bool(self.checks) == bool(self.computed):
            raise ValueError("check holds conditions, or computed names a function: one of both")
        return self

    def judge(self, view: LaunchView) -> Hits:
        """The first check that holds gives the hits."""
        if not self.scope.covers(view):
            return ()
        if self.computed:
            return self.computed(view)
        return next((hits for check in self.checks if (hits := list(check.hits(view)))), ())


def load(path: Path) -> Rule:
    """The rule of one file; InputError names the line of what is wrong, which takes a slower reader to find."""
    try:
        return Rule.model_validate({"id": path.stem, **document.own(path.read_text(encoding="utf-8"))})
    except (yaml.YAMLError, TypeError, ValueError):
        written = document.load(path)
        written.data["id"] = path.stem
        return document.validate(Rule, written)


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
    return finite(int(value) if isinstance(value, str) and re.fullmatch("[0-9]{1,18}", value) else value)


def _limit(limit: float | str, view: LaunchView) -> float | None:
    return _number(_value(view, limit)) if isinstance(limit, str) else limit


def _less(left: float | None, right: float | None) -> bool:
    return left is not None and right is not None and left < right


def _shown(value: object) -> str:
    if value is None:
        return "not set"
    return f"{value:.0f}" if isinstance(value, float) else str(value)
