"""The verdict on top of `plan` and `import`, and at the end what it assumes."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any

from sparkloom.base.assumption import SIGN, Assumption
from sparkloom.cli.show import COLOURS, coloured, complain, paragraph

if TYPE_CHECKING:
    from rich.console import Console

FITS = {True: "fits", False: "does not fit", None: "uncertain"}
LOOKS = {"starts": "ok", "should start": "ok", "may not start": "warning", "will not start": "error"}


def head(terminal: Console, name: str, start: dict[str, str]) -> None:
    why = f": {start['why']}" if start["why"] else ""
    paragraph(terminal, coloured((name, "bold"), "  ", (start["verdict"], COLOURS[LOOKS[start["verdict"]]]), why))
    surer = f"; surer: {start['surer']}" if start["surer"] else ""
    paragraph(terminal, f"{start['sure']}{surer}", indent=2, style="dim")


def memory(fits: bool | None, reason: str) -> str:
    """What is said of memory alone."""
    told = reason.removeprefix("uncertain: ")
    return f"memory {told}" if told.startswith("unknown") else f"memory {FITS[fits]}: {told}"


def sign(assumed: Iterable[dict[str, Any]], about: str) -> str:
    """What stands before a value that follows from an assumption."""
    return SIGN if any(one["about"] == about for one in assumed) else ""


def given(found: Iterable[dict[str, Any]]) -> list[str]:
    """Those of a command's JSON, in words."""
    return [str(Assumption(**one)) for one in found]


def assumed(terminal: Console, texts: Collection[str]) -> None:
    """The list at the end."""
    if texts:
        terminal.print()
        paragraph(terminal, "assumed:", style="bold")
    for text in texts:
        paragraph(terminal, f"{SIGN} {text}", indent=2)


def said(found: Iterable[Assumption]) -> None:
    """On standard error, where standard output is a command and nothing else; how much memory is free is none of it."""
    for one in found:
        if one.about != "memory":
            complain(f"{SIGN} {one}\n")
