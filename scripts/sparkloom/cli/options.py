"""Arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sparkloom.base import amount
from sparkloom.cli import names

Profile = Annotated[
    str,
    typer.Argument(
        help="name from model_profiles/, a part of one, a model's id, or a path to a file",
        show_default=False,
        callback=names.exact,
        autocompletion=names.begun,
    ),
]
OneProfile = Annotated[
    str | None,
    typer.Argument(
        help="name from model_profiles/, a part of one, a model's id, or a path to a file",
        show_default=False,
        callback=names.exact_if_any,
        autocompletion=names.begun,
    ),
]
Profiles = Annotated[
    list[str] | None,
    typer.Argument(
        help="names, parts of names or paths (default: every shipped profile)",
        show_default=False,
        callback=names.all_exact,
        autocompletion=names.begun,
    ),
]
Inventory = Annotated[
    Path | None, typer.Option("--inventory", "-i", help="inventory folder (default: inventories/gb10)")
]
Json = Annotated[bool, typer.Option("--json", help="machine-readable output")]
AskBecomePass = Annotated[bool, typer.Option("--ask-become-pass", "-K", help="ask for sudo's password")]
Overrides = Annotated[
    list[str] | None, typer.Option("--set", help="override: launch.key=value, env.NAME=value, engine.key=value")
]
Release = Annotated[str | None, typer.Option("--engine-version", help="use the flags of this engine release")]
Rank = Annotated[int, typer.Option("--rank", help="0 is the head")]


def tokens(text: str) -> int:
    """128k as a number; typer names the option that holds nonsense."""
    try:
        return amount.tokens(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


Context = Annotated[
    int | None,
    typer.Option(
        "--context", parser=tokens, metavar="TOKENS", help="tokens of one conversation, answer included: 4096, 128k, 1M"
    ),
]
