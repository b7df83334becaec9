"""What takes an inventory is tried with the shipped example's: its addresses are a stranger's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from sparkloom.cli.commands import COMMANDS, Command
from sparkloom.cli.lazy import loaded
from tests.journeys.test_nobodys_machines import ASKING, COMPUTING, PLAYBOOKS
from tests.places import REPO

PLAIN = {"bench"}  # it reads its own words, and takes -i


def taking(commands: Sequence[Command], before: str = "") -> Iterator[str]:
    """Every command that takes -i, those that help does not list too."""
    for command in commands:
        name = f"{before}{command.name}"
        if command.below:
            yield from taking(command.below, f"{name} ")
        elif command.plain:
            yield from {name} & PLAIN
        elif "-i" in {option for one in loaded(command).params for option in one.opts}:
            yield name


@pytest.mark.parametrize("name", [*taking(COMMANDS)])
def test_a_command_that_takes_an_inventory_is_tried(name: str) -> None:
    assert [words for words in (*ASKING, *COMPUTING) if f"{words} ".startswith(f"{name} ")]


def test_the_plain_commands_are_these() -> None:
    assert {command.name for command in COMMANDS if command.plain} == PLAIN


def test_every_playbook_is_tried() -> None:
    assert {REPO / play for play in PLAYBOOKS} == {REPO / "site.yml", *(REPO / "playbooks").glob("*.yml")}
    assert not list((REPO / "playbooks").glob("*.yaml"))
