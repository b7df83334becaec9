"""The page of exit statuses names every command, and every status that the program can end with."""

from __future__ import annotations

import re

from sparkloom.cli.commands import MOVED, SHELVES
from tests.places import REPO

PAGE = (REPO / "docs/reference/exit-status.md").read_text()
PROGRAM = (REPO / "scripts/sparkloom/cli/program.py").read_text()


def test_every_command_has_its_line() -> None:
    told = re.findall(r"^\| `([a-z-]+)` \|", PAGE, re.M)
    assert sorted(told) == sorted(command.name for shelf in SHELVES.values() for command in shelf)
    assert all(f"`{old}`" in PAGE and f"`show {new}`" in PAGE for old, new in MOVED.items())


def test_every_status_of_the_program_is_explained_there_and_in_the_help() -> None:
    ends = {"0", *re.findall(r"(?:code =|return) (\d+)", PROGRAM)}
    told = set(re.findall(r"^\| (\d+) \|", PAGE, re.M))
    assert ends <= told and {"0", "1", "2", "70", "130"} <= ends
    epilog = PROGRAM.split("EPILOG = (")[1].split(")\n")[0]
    assert ends <= set(re.findall(r"\d+", epilog)) and "docs/reference/exit-status.md" in epilog
