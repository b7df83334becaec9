"""Rules: one trap per file. `check(launch)` gives findings, sorted by severity."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

from sparkloom.base.finding import Finding, ranked
from sparkloom.inputs.platform import GB10, Platform
from sparkloom.judge.rules import traps
from sparkloom.judge.rules.base import LaunchView, Rule
from sparkloom.launch import engines
from sparkloom.launch.resolve import LaunchSketch

HERE = Path(__file__).parent
NOT_RULES = {"base", "image_packages", "sources", "traps"}


@cache
def every() -> tuple[Rule, ...]:
    """All rules, found by their files: YAML where that says all, else a class in Python."""
    computed = [_computed(info.name) for info in iter_modules(__path__) if info.name not in NOT_RULES]
    return tuple(sorted([*computed, *map(traps.load, HERE.glob("*.yml"))], key=lambda rule: rule.id))


def _computed(name: str) -> Rule:
    """The rule of one module; a module with none, or several, is a mistake and fails here."""
    module = import_module(f"{__name__}.{name}")
    own = [value for value in vars(module).values() if isinstance(value, type) and value.__module__ == module.__name__]
    (rule,) = [value for value in own if issubclass(value, Rule)]
    return rule()


def check(launch: LaunchSketch, platform: Platform = GB10) -> list[Finding]:
    """What the rules say about a launch."""
    view = launch.view(platform)
    places = _places(launch)
    return ranked(
        _finding(rule, hit.message, _where(launch, places, hit.flag)) for rule in every() for hit in rule.judge(view)
    )


def _places(launch: LaunchSketch) -> dict[str, str]:
    """Where each flag was written, under its name there and under the oldest, which rules know."""
    engine = engines.get(launch.engine)
    places: dict[str, str] = {}
    for setting in launch.settings:
        for name in (setting.name, *engine.canonical([setting])):
            places.setdefault(name, setting.origin.where)
    return places


def fired(view: LaunchView, rules: Iterable[Rule] | None = None) -> list[Rule]:
    """The rules that match a launch or a row."""
    return [rule for rule in (every() if rules is None else rules) if next(iter(rule.judge(view)), None) is not None]


def _where(launch: LaunchSketch, places: dict[str, str], flag: str) -> str:
    if flag.startswith("env."):
        return launch.profile.where("env", flag.removeprefix("env."))
    if flag.startswith("engine."):
        return launch.profile.where("engine", flag.removeprefix("engine."))
    return places.get(flag) or launch.profile.where("launch", flag)


def _finding(rule: Rule, message: str, where: str) -> Finding:
    text = f"{message}: {rule.why}"
    sources = tuple(" ".join(filter(None, (source.what, source.date, source.link))) for source in rule.evidence)
    return Finding(where, rule.id, text, expected="", fix=rule.fix, severity=rule.severity, evidence=sources)
