"""Every command of commands.toml; the function behind it is imported when the command is asked for.

A command that is `plain` reads its own words: loading the library that reads the others' would cost `bench` more than
measuring eight streams. So nothing but the standard library is imported here.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

PROGRAM = "sparkloom"
ASKED_BY_SHELL = "_SPARKLOOM_COMPLETE"  # set by the function that `sparkloom completion` prints


class Command(NamedTuple):
    """`where` is `module:function`, below this package; a group has the commands `below` it instead."""

    name: str
    help: str
    where: str = ""
    plain: bool = False
    below: tuple[Command, ...] = ()
    hidden: bool = False  # it works, and is neither listed nor completed

    def load(self) -> Callable[..., Any]:
        module, _, function = self.where.partition(":")
        loaded: Callable[..., Any] = getattr(import_module(f"sparkloom.{module}"), function)
        return loaded


def _command(row: dict[str, Any]) -> Command:
    return Command(**{**row, "below": tuple(map(_command, row.get("below", ())))})


TABLE = Path(__file__).with_name("commands.toml").read_text(encoding="utf-8")
SHELVES = {shelf: tuple(map(_command, rows)) for shelf, rows in tomllib.loads(TABLE).items()}
SHOW = next(command.below for command in SHELVES["Look"] if command.name == "show")
# Old names that others' scripts may call; not listed, and gone with the next release.
MOVED = {"argv": "argv", "env": "env", "render": "manifests", "schema": "schema", "nccl-log": "nccl"}
COMMANDS = (
    *chain.from_iterable(SHELVES.values()),
    *(command._replace(name=old, hidden=True) for old, new in MOVED.items() for command in SHOW if command.name == new),
)
