"""Findings on a terminal: those of one rule together, wrapped to the window, and what they have in common said once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sparkloom.base.finding import ORDER
from sparkloom.cli.show import COLOURS, complain, console, paragraph, window

if TYPE_CHECKING:
    from rich.console import Console

    from sparkloom.base.finding import Finding

Group = list[dict[str, Any]]
SOURCES = 2  # of one finding; --json has all


def listed(terminal: Console, findings: list[dict[str, Any]]) -> str:
    """Prints findings, worst first, and returns how many of each severity there are."""
    for group in _grouped(findings):
        (_block if window(terminal) else _lines)(terminal, group)
    counts = {severity: sum(f["severity"] == severity for f in findings) for severity in ORDER}
    return ", ".join(f"{count} {severity}" for severity, count in counts.items() if count) or "no findings"


def refusal(findings: list[Finding]) -> None:
    """What stops a render, on stderr."""
    terminal = console(stderr=True)
    listed(terminal, [finding.as_dict() for finding in findings])
    said = f"refused: {len(findings)} error finding(s); change the profile, or --force to render all the same"
    paragraph(terminal, said, style="bold")


def forced(findings: list[Finding]) -> None:
    """What did not stop it: on stderr, so that it cannot pass unseen."""
    for finding in findings:
        complain(f"forced past {finding.rule}: {finding.message}\n")


def _grouped(findings: list[dict[str, Any]]) -> list[Group]:
    """What is cured by the same words stands together."""
    groups: dict[tuple[str, str, str], Group] = {}
    for finding in sorted(findings, key=lambda finding: ORDER[finding["severity"]]):
        groups.setdefault((finding["severity"], finding["rule"], finding["fix"]), []).append(finding)
    return list(groups.values())


def _lines(terminal: Console, group: Group) -> None:
    """For a file or a pipe: a finding is one line for grep."""
    from rich.text import Text

    for finding in group:
        head = Text.assemble(
            (finding["where"], "dim"),
            " ",
            (finding["severity"], COLOURS[finding["severity"]]),
            f" {finding['message']} ",
            (f"[{finding['rule']}]", "dim"),
        )
        paragraph(terminal, head)
        _sources(terminal, finding, indent=4)
    _fix(terminal, group, indent=4)


def _block(terminal: Console, group: Group) -> None:
    """For a window: the rule on top, each place with what was found there, the fix below."""
    from rich.text import Text

    severity = group[0]["severity"]
    times = f" ({len(group)} times)" if len(group) > 1 else ""
    paragraph(terminal, Text.assemble((severity, COLOURS[severity]), " ", (group[0]["rule"], "bold"), times))
    for finding in group:
        paragraph(terminal, finding["where"], indent=2, style="dim")
        paragraph(terminal, finding["message"], indent=4)
        _sources(terminal, finding, indent=4)
    _fix(terminal, group, indent=2)
    terminal.print()


def _sources(terminal: Console, finding: dict[str, Any], indent: int) -> None:
    for source in finding["evidence"][:SOURCES]:
        paragraph(terminal, f"known from: {source}", indent=indent, style="dim")


def _fix(terminal: Console, group: Group, indent: int) -> None:
    if group[0]["fix"]:
        whose = "fix" if len(group) == 1 else f"fix of these {len(group)}"
        paragraph(terminal, f"{whose}: {group[0]['fix']}", indent=indent)
