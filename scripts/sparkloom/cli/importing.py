"""Others' recipes in, and a judged launch out again for people without Kubernetes."""

from __future__ import annotations

import sys
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from pathlib import Path
from typing import Annotated, Literal

import typer

from sparkloom import case
from sparkloom.base.errors import InputError
from sparkloom.cli import show, show_findings, show_import, show_start
from sparkloom.cli.options import Inventory, Json, Overrides, Profile, Release, Verbose, writes_to
from sparkloom.judge.start import WILL_NOT

MOST = 256 << 10  # bytes: a recipe that people pass around has some thousands, a page with several some ten thousand


def import_(
    file: Annotated[
        str,
        typer.Argument(
            help="a sparkrun recipe (version 1 or 2), a compose file, a cell of SGLang's cookbook, a script or a "
            "command line; - is standard input",
        ),
    ],
    inventory: Inventory = None,
    config: Annotated[
        Path | None,
        typer.Option("--config", "--facts", help="the model's config.json or its folder, if no profile has the facts"),
    ] = None,
    pick: Annotated[str, typer.Option(help="the cell with these words, if the file has several cells")] = "",
    engine_version: Annotated[str | None, typer.Option(help="engine release, if the file does not name it")] = None,
    output: Annotated[Path | None, writes_to("file for the profile; - prints it")] = None,
    verbose: Verbose = False,
    json: Json = False,
) -> None:
    written = output is not None and str(output) != "-"
    asked = {"pick": pick, "shown": str(output) if written else "", "config": config, "release": engine_version}
    data = case.take_in(_text(file), file, inventory, **asked)
    text = data.pop("text")
    if output is not None and written:
        _write(output, text)
    if str(output) == "-" and not json:
        show.say(text)
    else:
        show.out(data, json, lambda shown: show_import.taken(shown, file, output, verbose))
    raise typer.Exit(1 if data["start"]["verdict"] == WILL_NOT else 0)


def export(
    profile: Profile,
    form: Annotated[Literal["sparkrun", "compose", "commands"], typer.Option("--as", help="what to write")],
    inventory: Inventory = None,
    overrides: Overrides = None,
    engine_version: Release = None,
    output: Annotated[Path | None, writes_to("file to write (default: standard output)")] = None,
    force: Annotated[bool, typer.Option("--force", help="write despite error findings, and name them")] = False,
) -> None:
    made = case.hand_out(profile, form, inventory, overrides=overrides or [], release=engine_version, force=force)
    show_findings.forced(made.case.errors)
    show_start.said(made.case.assumed)
    for said in made.not_carried:
        show.complain(f"not in it: {said}\n")
    if output is None:
        show.say(made.text)
    else:
        _write(output, made.text)


def _text(file: str) -> str:
    """The source; whatever is not text is refused."""
    try:
        raw = sys.stdin.buffer.read(MOST + 1) if file == "-" else _read(Path(file))
        if len(raw) > MOST:
            message = f"holds more than {MOST >> 10} KiB; expected a recipe, or the page with it"
            raise InputError.single(file, message, rule="unreadable")
        return raw.decode("utf-16" if raw[:2] in (BOM_UTF16_LE, BOM_UTF16_BE) else "utf-8").removeprefix("\ufeff")
    except FileNotFoundError:
        fetched = "; nothing is fetched: save its text, or paste it into `sparkloom import -`" * ("://" in file)
        raise InputError.single(file, f"no such file{fetched}", rule="missing-file") from None
    except IsADirectoryError:
        message = "is a folder; name one file of it, as in sparkloom import FOLDER/recipe.yaml"
        raise InputError.single(file, message, rule="missing-file") from None
    except (OSError, UnicodeDecodeError) as error:
        message = f"cannot be read as UTF-8 text: {error}; save it as UTF-8"
        raise InputError.single(file, message, rule="unreadable") from None


def _read(path: Path) -> bytes:
    with path.open("rb") as source:
        return source.read(MOST + 1)


def _write(path: Path, text: str) -> None:
    another = path.is_file() and _read(path) != text.encode()
    show.write(path, text)
    sys.stderr.write(f"wrote {path}{', in place of what it held' if another else ''}\n")
