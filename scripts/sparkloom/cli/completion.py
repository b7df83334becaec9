"""What a shell needs to complete commands, options and profiles."""

from __future__ import annotations

from enum import StrEnum
from importlib import import_module
from typing import Annotated, Any

import typer

from sparkloom.cli import commands, show


class Shell(StrEnum):
    bash = "bash"
    zsh = "zsh"
    fish = "fish"


def script(
    shell: Annotated[Shell, typer.Argument(help='for bash: eval "$(sparkloom completion bash)" in ~/.bashrc')],
) -> None:
    show.say(
        _library().get_completion_script(
            prog_name=commands.PROGRAM, complete_var=commands.ASKED_BY_SHELL, shell=shell.value
        )
        + "\n"
    )


def ready() -> None:
    """Teaches the command line library to answer the shells' functions."""
    _library().completion_init()


def _library() -> Any:
    return import_module("typer.completion")  # which hands on what it has from others
