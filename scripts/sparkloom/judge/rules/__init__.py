"""Rules: one trap per file. `check(launch)` gives findings, sorted by severity."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from sparkloom.base.finding import Finding, ranked
from sparkloom.inputs.platform import GB10, Platform
from sparkloom.judge.rules.base import LaunchView
from sparkloom.judge.rules.rule import Rule, load
from sparkloom.launch import engines
from sparkloom.launch.resolve import LaunchSketch


@cache
def every() -> tuple[Rule, ...]:
    """All rules, found by their files."""
    return tuple(sorted(map(load, Path(__file__).parent.glob("*.yml")), key=lambda rule: rule.id))


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


def fired(view: LaunchView) -> list[Rule]:
    """The rules that match a launch or a row."""
    return [rule for rule in every() if next(iter(rule.judge(view)), None) is not None]


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
