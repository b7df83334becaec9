"""What is not as it should be: the one shape in which every judge of the house says so."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Literal

Severity = Literal["error", "warning", "info"]
ORDER: dict[str, int] = {"error": 0, "warning": 1, "info": 2}


@dataclass(frozen=True, slots=True)
class Finding:
    rule: str
    severity: Severity
    where: str
    message: str
    fix: str
    evidence: list[str]

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def ranked(findings: Iterable[Finding]) -> list[Finding]:
    """Errors first, then by rule and place."""
    return sorted(findings, key=lambda finding: (ORDER[finding.severity], finding.rule, finding.where))
