"""How results look on a terminal. Data comes in, words go out; nothing is decided here."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from sparkloom.base.errors import Problem

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from sparkloom.base.finding import Finding

COLOURS = {"error": "bold red", "warning": "yellow", "info": "cyan", "ok": "green"}


def out(data: Any, as_json: bool, human: Callable[[Any], object]) -> None:
    """JSON on request, else the human form (which prints, or returns text to print)."""
    try:
        if as_json:
            plain = not (sys.stdout.encoding or "").lower().startswith("utf")
            say(json.dumps(data, indent=2, ensure_ascii=plain) + "\n")
            return
        text = human(data)
        if isinstance(text, str):
            say(text if text.endswith("\n") else text + "\n")
    except BrokenPipeError:
        drop_output()  # the reader has seen enough; the exit status still is the verdict's


def drop_output() -> None:
    """What is still buffered goes nowhere, so that the interpreter's last flush does not fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def unusable(found: Iterable[Problem]) -> None:
    """The problems as `--json` gives them, on standard output; stderr has them as lines."""
    problems = [problem._asdict() for problem in found]
    out({"error": "unusable input", "problems": problems}, True, str)


def say(text: str) -> None:
    """To standard output. A reader who has seen enough (`| head`) is no failure: an error without a number passes
    through the command line library, which would exit with 1."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        raise BrokenPipeError from None


def console(*, stderr: bool = False) -> Console:
    from rich.console import Console

    class Pipe(Console):
        """As `say`: rich would exit with 1."""

        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    # a file or a pipe has no width: tables keep their rows whole there
    wide = None if (sys.stderr if stderr else sys.stdout).isatty() else 200
    return Pipe(stderr=stderr, highlight=False, width=wide)


def table(*columns: str, title: str | None = None) -> Table:
    from rich.table import Table

    result = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
    for column in columns:
        result.add_column(
            column.removesuffix(">"), justify="right" if column.endswith(">") else "left", overflow="fold"
        )
    return result


def number(value: Any, digits: int = 1) -> str:
    if value is None:
        return "-"
    return f"{value:,.{digits}f}" if isinstance(value, float) else str(value)


def findings_list(terminal: Console, findings: list[dict[str, Any]]) -> str:
    """Prints findings, worst first, and returns how many of each severity there are."""
    for finding in findings:
        _finding(terminal, finding)
    counts = {severity: sum(f["severity"] == severity for f in findings) for severity in ("error", "warning", "info")}
    return ", ".join(f"{count} {severity}" for severity, count in counts.items() if count) or "no findings"


def _finding(terminal: Console, finding: dict[str, Any]) -> None:
    from rich.text import Text

    head = Text.assemble(
        (finding["where"], "dim"),
        " ",
        (finding["severity"], COLOURS[finding["severity"]]),
        f" {finding['message']} ",
        (f"[{finding['rule']}]", "dim"),
    )
    # soft_wrap: a finding is one line for grep, and as wide as the window for a person
    terminal.print(head, soft_wrap=True)
    if finding["fix"]:
        terminal.print(Text(f"    fix: {finding['fix']}"), soft_wrap=True)
    for source in finding["evidence"][:2]:
        terminal.print(Text(f"    known from: {source}", style="dim"), soft_wrap=True)


def problems(unusable: Iterable[Problem]) -> None:
    """What is unusable, on stderr: `file:line:column: message [rule]`, as compilers say it."""
    sys.stderr.write("".join(f"{problem}\n" for problem in unusable))


def refusal(findings: list[Finding]) -> None:
    terminal = console(stderr=True)
    for finding in findings:
        _finding(terminal, finding.as_dict())
    terminal.print(
        f"refused: {len(findings)} error finding(s); change the profile, or --force to render all the same",
        style="bold",
    )


def complain(text: str) -> None:
    """To standard error, at once."""
    sys.stderr.write(text)
    sys.stderr.flush()
