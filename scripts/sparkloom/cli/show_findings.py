"""Findings on a terminal: those of one rule together, wrapped to the window, and what they have in common said once."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from sparkloom.base import amount
from sparkloom.base.finding import ORDER
from sparkloom.cli.show import COLOURS, coloured, complain, console, paragraph, window

if TYPE_CHECKING:
    from rich.console import Console

    from sparkloom.base.finding import Finding

Group = list[dict[str, Any]]
SOURCES = 2  # of one finding; --json has all
SENTENCE = re.compile(r"(?<=[\w)'%])\. (?=[A-Z])")  # where the next one begins


def listed(terminal: Console, findings: list[dict[str, Any]], verbose: bool | None = None) -> str:
    """Prints findings, worst first, and returns how many of each severity there are; None: the command has no -v."""
    for group in _grouped(findings):
        if window(terminal):
            _block(terminal, group, bool(verbose))
        else:
            _lines(terminal, group)
    if findings and verbose is False and window(terminal):
        paragraph(terminal, "-v: all of it, the rules' names and where they are known from", style="dim")
    counts = {severity: sum(f["severity"] == severity for f in findings) for severity in ORDER}
    told = (f"{count} info" if name == "info" else amount.of(count, name) for name, count in counts.items() if count)
    return ", ".join(told) or "no findings"


def refusal(findings: list[Finding]) -> None:
    """What stops a render, on stderr."""
    terminal = console(stderr=True)
    listed(terminal, [finding.as_dict() for finding in findings])
    said = f"refused: {amount.of(len(findings), 'error')}; change the profile, or --force to render all the same"
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
    for finding in group:
        head = coloured(
            (finding["where"], "dim"),
            " ",
            (finding["severity"], COLOURS[finding["severity"]]),
            f" {finding['message']} ",
            (f"[{finding['rule']}]", "dim"),
        )
        paragraph(terminal, head)
        _sources(terminal, finding, indent=4)
    _fix(terminal, group, indent=4)


def _block(terminal: Console, group: Group, verbose: bool) -> None:
    """For a window: what was found in a sentence, the fix, and where; several with one fix stand above it."""
    places: dict[str, list[str]] = {}
    for finding in group:
        places.setdefault(finding["message"], []).append(finding["where"])
    for message, where in places.items():
        _sentence(terminal, group[0]["severity"], message if verbose else SENTENCE.split(message, maxsplit=1)[0])
        if len(places) > 1:
            paragraph(terminal, ", ".join(where), indent=2, style="dim")
    _fix(terminal, group, indent=2)
    if len(places) == 1:
        paragraph(terminal, ", ".join(where), indent=2, style="dim")
    if verbose:
        paragraph(terminal, f"rule: {group[0]['rule']}", indent=2, style="dim")
        known = [source for finding in group for source in finding["evidence"]]
        _sources(terminal, {"evidence": list(dict.fromkeys(known))}, indent=2)
    terminal.print()


def _sentence(terminal: Console, severity: str, said: str) -> None:
    """Its other lines stand a little to the right."""
    from rich.text import Text

    text = Text.assemble((severity, COLOURS[severity]), f": {said}", overflow="fold")
    terminal.print(Text("\n  ").join(text.wrap(terminal, terminal.width - 2)))


def _sources(terminal: Console, finding: dict[str, Any], indent: int) -> None:
    for source in finding["evidence"][:SOURCES]:
        paragraph(terminal, f"known from: {source}", indent=indent, style="dim")


def _fix(terminal: Console, group: Group, indent: int) -> None:
    if group[0]["fix"]:
        whose = "fix" if len(group) == 1 else f"fix of these {len(group)}"
        paragraph(terminal, f"{whose}: {group[0]['fix']}", indent=indent)
