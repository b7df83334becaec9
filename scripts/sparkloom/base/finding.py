"""What is not as it should be: the one shape in which every judge of the house says so."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

Severity = Literal["error", "warning", "info"]
ORDER: dict[str, int] = {"error": 0, "warning": 1, "info": 2}
SHOWN = ("rule", "severity", "where", "message", "fix")


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong, and what to do about it. Rules say in the message what they expect, checks apart."""

    where: str  # a place in a profile (file:line:column), or a node
    rule: str  # the rule, the check or the part of a machine that does not hold
    message: str  # what was found
    expected: str
    fix: str
    severity: Severity = "error"
    evidence: tuple[str, ...] = ()  # where a rule is known from
    area: str = ""  # of the doctor: which part of a node it is about
    group: str = ""  # of a site that serves several: whose it is

    def as_dict(self) -> dict[str, Any]:
        """As `lint --json` and `plan --json` give it."""
        return {**{name: getattr(self, name) for name in SHOWN}, "evidence": list(self.evidence)}


def errors(findings: Iterable[Finding]) -> list[Finding]:
    return [finding for finding in findings if finding.severity == "error"]


def ranked(findings: Iterable[Finding]) -> list[Finding]:
    """Errors first, then by rule and place."""
    return sorted(findings, key=lambda finding: (ORDER[finding.severity], finding.rule, finding.where))
