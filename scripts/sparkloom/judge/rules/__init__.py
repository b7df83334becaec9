"""Rules: one trap per file. `check(launch)` gives findings, sorted by severity."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from sparkloom.base.finding import Finding, ranked
from sparkloom.inputs.platform import GB10, Platform
from sparkloom.judge.rules.base import LaunchView
from sparkloom.judge.rules.rule import Rule, load
from sparkloom.launch.resolve import LaunchSketch


@cache
def every() -> tuple[Rule, ...]:
    """All rules, found by their files."""
    return tuple(sorted(map(load, Path(__file__).parent.glob("*.yml")), key=lambda rule: rule.id))


def check(launch: LaunchSketch, platform: Platform = GB10) -> list[Finding]:
    """What the rules say about a launch."""
    view = launch.view(platform)
    return ranked(_finding(rule, hit.message, launch.where(hit.flag)) for rule in every() for hit in rule.judge(view))


def applying(view: LaunchView) -> list[Rule]:
    """The rules that have to do with such a launch."""
    return [rule for rule in every() if rule.scope.covers(view)]


def fired(view: LaunchView) -> list[Rule]:
    """The rules that match a launch or a row."""
    return [rule for rule in every() if next(iter(rule.judge(view)), None) is not None]


def _finding(rule: Rule, message: str, where: str) -> Finding:
    text = f"{message}: {rule.why}"
    sources = tuple(" ".join(filter(None, (source.what, source.date, source.link))) for source in rule.evidence)
    return Finding(where, rule.id, text, expected="", fix=rule.fix, severity=rule.severity, evidence=sources)
