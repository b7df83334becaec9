"""Arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from sparkloom.base import amount
from sparkloom.base.errors import InputError
from sparkloom.cli import names
from sparkloom.inputs import remembered


def _exact(given: Any) -> Any:
    """One name, several or none."""
    return [names.exact(name) for name in given] if isinstance(given, list) else given and names.exact(given)


def _profile(help: str) -> Any:
    return typer.Argument(help=help, callback=_exact, autocompletion=names.begun)


def writes_to(help: str) -> Any:
    """Of what a command makes: the help says what is written, and where it goes without."""
    return typer.Option("--output", "-o", help=help)


def _site(ctx: typer.Context, named: Path | None) -> Path | None:
    """Remembered where it is not named; a shell that completes a line asks for neither."""
    return named if ctx.resilient_parsing else remembered.meant(named)


ONE = "name in model_profiles/ or part of it, a model's id, or a path to a file"
Profile = Annotated[str, _profile(ONE)]
AnyProfile = Annotated[str, typer.Argument(help=ONE, autocompletion=names.begun)]
OneProfile = Annotated[str | None, _profile(ONE)]
Profiles = Annotated[list[str] | None, _profile("names, parts of names or paths (default: every shipped profile)")]
Inventory = Annotated[
    Path | None,
    typer.Option(
        "--inventory",
        "-i",
        callback=_site,
        is_eager=True,  # said before anything else is
        help="inventory folder (default: site of `sparkloom use`, else inventories/gb10)",
    ),
]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="also show the rules' names and sources")]
Json = Annotated[bool, typer.Option("--json", help="machine-readable output")]
AskBecomePass = Annotated[bool, typer.Option("--ask-become-pass", "-K", help="ask for sudo's password")]
Overrides = Annotated[
    list[str] | None, typer.Option("--set", help="override: launch.key=value, env.NAME=value, engine.key=value")
]
Release = Annotated[str | None, typer.Option("--engine-version", help="use the flags of this engine release")]
Rank = Annotated[int, typer.Option("--rank", help="rank number; 0 is the head")]


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


def named_site(inventory: Path | None, question: str) -> Path:
    """The inventory that is named; the shipped example is nobody's site."""
    if inventory is None:
        message = f"{question} -i names its inventory, `sparkloom use` remembers it, `sparkloom init` writes one"
        raise InputError.single("--inventory", message, rule="no-site")
    return inventory
