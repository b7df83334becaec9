"""Failures that no rule explains, as rules to propose: what the log said, and on which settings it hangs.

A proposal is for a person: it says what was seen, never why. A setting is named when it stands in every failure of one
kind and in no cell that was fine.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import yaml

from sparkloom.measure.matrix.spec import CellResult, Spec, Value, differing

FAILED = ("startup_crash", "bench_crash", "hang", "garbage")
Pair = tuple[str, Value]


class Proposal(NamedTuple):
    """`hangs_on`: settings that failed together and never were fine; empty where the grid does not tell."""

    id: str
    status: str
    symptom: str
    pattern: str | None
    cells: list[str]
    hangs_on: list[list[Pair]]

    def as_dict(self) -> dict[str, object]:
        return {**self._asdict(), "hangs_on": [dict(pairs) for pairs in self.hangs_on]}


def proposals(spec: Spec, results: Sequence[CellResult]) -> list[Proposal]:
    """One for each kind of unexplained failure."""
    axes = [name for name in differing([r.settings for r in results]) if name in spec.axes]
    fine = [result for result in results if result.status == "ok"]
    groups: dict[tuple[str, str], list[CellResult]] = {}
    for result in results:
        if result.status in FAILED and not result.matched_rules:
            groups.setdefault((result.status, _shape(_symptom(result))), []).append(result)
    return [_proposal(spec, axes, failed, fine) for failed in groups.values()]


def _proposal(spec: Spec, axes: list[str], failed: list[CellResult], fine: list[CellResult]) -> Proposal:
    symptom = _symptom(failed[0])
    telling = bool(failed[0].telling)
    hangs_on = _hangs_on(axes, failed, fine)
    words = "-".join(re.sub(r"[^a-z0-9]+", "-", str(value).lower()).strip("-") for _, value in (hangs_on or [[]])[0])
    name = f"{spec.name}-{words or failed[0].status.replace('_', '-')}"[:60].strip("-")
    return Proposal(
        name, failed[0].status, symptom, _pattern(symptom) if telling else None, [r.id for r in failed], hangs_on
    )


def _hangs_on(axes: list[str], failed: list[CellResult], fine: list[CellResult]) -> list[list[Pair]]:
    """The smallest sets of settings that every failure has and no fine cell has."""
    if not fine:
        return []
    shared = [name for name in axes if len({json.dumps(r.settings.get(name)) for r in failed}) == 1]
    for size in (1, 2, 3):
        sets = []
        for names in combinations(shared, size):
            pairs = [(name, failed[0].settings.get(name)) for name in names]
            if not any(all(json.dumps(r.settings.get(n)) == json.dumps(v) for n, v in pairs) for r in fine):
                sets.append(pairs)
        if sets:
            return sets
    return []


def _symptom(result: CellResult) -> str:
    return (result.telling[-1] if result.telling else result.note or result.status).strip()[:300]


def _shape(text: str) -> str:
    return re.sub(r"0x[0-9a-f]+|\d+(\.\d+)?", "#", text)


def _pattern(symptom: str) -> str:
    """The line as a pattern: numbers and addresses differ from run to run."""
    return "".join(
        r"(?:0x[0-9a-f]+|[\d.]+)"
        if re.fullmatch(r"0x[0-9a-f]+|\d+(\.\d+)?", part)
        else re.escape(part).replace(r"\ ", " ")
        for part in re.split(r"(0x[0-9a-f]+|\d+(?:\.\d+)?)", symptom)
        if part
    )


def skeleton(spec: Spec, proposal: Proposal) -> str:
    """The beginning of a rule's file, as docs/write-a-rule.md asks for it: the cause is the person's part."""
    pairs = [(_flag(name), value) for name, value in (proposal.hangs_on or [[]])[0] if not name.startswith("engine.")]
    flags = {name: value for name, value in pairs if not name.startswith("env.")}
    env = {name: value if value is None else str(value) for name, value in pairs if name.startswith("env.")}
    when = {name: {"given": False} if value is None else value for name, value in {**flags, **env}.items()}
    found = _said(pairs) or "the grid does not tell on which setting it hangs"
    rule = {
        "severity": "warning",
        "scope": {"engine": "*"},
        "check": [{"when": when, "found": found, "at": list(when) or "parallel"}],
        "why": f"TO WRITE; seen: {proposal.symptom}",
        "fix": "TO WRITE",
        "evidence": [],
        "log_pattern": proposal.pattern,
        "failing": {"flags": flags, "env": {name.removeprefix("env."): value for name, value in env.items() if value}},
        "passing": {},
    }
    seen = f"the grid {spec.name}, cells {', '.join(proposal.cells)}: {proposal.status}"
    head = f"# PROPOSED from {seen}. Say the cause here.\n"
    others = "".join(f"# as likely: {_said(more)}\n" for more in proposal.hangs_on[1:])
    todo = "# To write: the scope, as narrow as what was seen; why, fix, evidence; a launch that passes.\n"
    return head + others + todo + yaml.safe_dump(rule, sort_keys=False, allow_unicode=True, width=110)


def _flag(name: str) -> str:
    return name.removeprefix("launch.")


def _said(pairs: Sequence[Pair]) -> str:
    return " and ".join(f"{_flag(name)} is {value}" for name, value in pairs)


def text(spec: Spec, proposed: Sequence[Proposal]) -> str:
    """What `matrix SPEC propose` prints."""
    if not proposed:
        return "every failure is explained by a rule, or none is recorded"
    parts = []
    for proposal in proposed:
        hangs = "; or ".join(map(_said, proposal.hangs_on)) or "no setting tells it apart from what was fine"
        cells = f"{len(proposal.cells)} cells ({', '.join(proposal.cells)})"
        parts.append(f"# {proposal.status} in {cells}: {proposal.symptom}\n# hangs on: {hangs}")
        parts.append(skeleton(spec, proposal))
    return "\n".join(parts)
