"""`sparkloom plan` with a name that several profiles have: what each would be on this site, and which one is meant."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import typer

from sparkloom.base.assumption import SIGN
from sparkloom.base.errors import InputError
from sparkloom.cli import names, show
from sparkloom.judge.start import ORDER, WILL_NOT

Planned = Callable[[str], dict[str, Any]]


def chosen(text: str, first: bool, json: bool, planned: Planned) -> str:
    """The profile that is meant. Where nobody says which, they are listed, and the name stays refused."""
    try:
        return names.exact(text)
    except names.Ambiguous as refused:
        rows = sorted((_row(name, planned) for name in refused.names), key=_best_first)
        if json and not first:
            show.problems(refused.problems)
            show.unusable(refused.problems, candidates=rows)
            raise typer.Exit(2) from None
        if not first:
            show.out(rows, False, _listed)
        given = "1" if first else _asked(len(rows))
        if given == "":  # the list stands above it
            raise typer.Exit(2) from None
        meant = int(given) if given and given.isdecimal() else 0
        if not 1 <= meant <= len(rows):
            raise
        show.complain(f"{text}: {rows[meant - 1]['name']}\n")
        return str(rows[meant - 1]["name"])


def _row(name: str, planned: Planned) -> dict[str, Any]:
    try:
        data = planned(name)
    except InputError as error:
        return {"name": name, "verdict": WILL_NOT, "why": error.problems[0].message, "n1": None, "measured": False}
    measured = (data["speed"]["measured"] or {}).get("1")
    n1 = data["speed"]["predicted"]["1"] if measured is None else measured
    return {"name": name, **data["start"], "n1": n1, "measured": measured is not None}


def _best_first(row: dict[str, Any]) -> tuple[int, float]:
    return ORDER.index(row["verdict"]), -(row["n1"] or 0.0)


def _listed(rows: list[dict[str, Any]]) -> None:
    """Each on one line of 80 columns; a speed that nobody measured carries the sign."""
    told = (
        (f"{at:>2} {row['name']}", row["verdict"], f"{_sign(row)}{show.number(row['n1'])}")
        for at, row in enumerate(rows, 1)
    )
    show.table(("   profile", "", "n1>"), told)


def _sign(row: dict[str, Any]) -> str:
    return SIGN if row["n1"] and not row["measured"] else ""


def _asked(count: int) -> str | None:
    """What a person at a terminal types: the number of one, or nothing for none of them."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return None
    show.complain(f"which one (1 to {count}, Enter for none)? ")
    return sys.stdin.readline().strip()
