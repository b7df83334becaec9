"""Command line of the oracle: fetch, catalog, judge, batch, refresh. Run ``python -m scripts.oracle --help``.

Exit: 0 fine, 1 the command line is refused, 2 something is wrong here, 3 the release could not be fetched.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

from . import catalog, describe, fetch, refresh
from .release import Release, isolate


class BadInput(Exception):
    """What came on stdin is not what batch reads."""


def main(words: list[str] | None = None) -> int:
    options = _parser().parse_args(words)
    try:
        return int(options.run(options))
    except fetch.FetchError as refusal:
        print(f"oracle: {refusal}", file=sys.stderr)
        return 3  # apart from every other failure: whoever asks may go without an answer, but must say so
    except ImportError as missing:
        print(
            f"oracle: the release imports '{missing.name}', which is neither stubbed nor installed; "
            f"if no parser needs it, name it in STUBBED of scripts/oracle/engine_{options.engine}.py ({missing})",
            file=sys.stderr,
        )
        return 2
    except BadInput as refusal:
        print(f"oracle: {refusal}", file=sys.stderr)
        return 2
    except (describe.UnknownShape, LookupError, AttributeError) as strange:
        print(
            f"oracle: {options.engine} {options.version} is built in a way that is new here: {strange}", file=sys.stderr
        )
        return 2
    except KeyboardInterrupt:
        print("oracle: stopped; what was fetched completely stays in the cache", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="oracle", description="Asks the real argument parser of an engine release.")
    parser.add_argument(
        "--cache", type=Path, default=None, help=f"folder of fetched releases (default {fetch.cache_root()})"
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, run, text in (
        ("fetch", _fetch, "bring releases here: ENGINE VERSION [VERSION ...]"),
        ("catalog", _catalog, "print the release's catalog, or write it with -o"),
        ("judge", _judge, "judge one command line given after --"),
        ("batch", _batch, 'judge JSON lines from stdin, one list of words (or {"argv": [...]}) per line'),
    ):
        command = commands.add_parser(name, help=text, description=text)
        command.set_defaults(run=run)
        command.add_argument("engine", choices=sorted(fetch.REAL_DEPENDENCIES))
        command.add_argument("version", nargs="+" if name == "fetch" else None)
        if name == "catalog":
            command.add_argument("-o", "--output", type=Path)
        if name == "judge":
            command.add_argument("argv", nargs="*")
        if name in ("judge", "batch"):
            command.add_argument("--values", action="store_true", help="include the parsed values")
        if name == "batch":
            command.add_argument(
                "--catalog", type=Path, help="also write the release's catalog there, from the same process"
            )
    again = commands.add_parser("refresh", help="write all generated catalogs of this repository anew")
    again.set_defaults(run=lambda _options: refresh.refresh(_progress), engine="*")
    return parser


def _load(options: argparse.Namespace) -> Release:
    folder = fetch.fetch(options.engine, options.version, options.cache, _progress)
    isolate(fetch.fetch_dependencies(options.engine, options.cache, _progress))
    # The engines read their own variables while they are imported; a person's settings must not colour a catalog.
    for name in list(os.environ):
        if name.startswith(("SGLANG_", "SGL_", "VLLM_")):
            del os.environ[name]
    return Release(options.engine, options.version, folder)


def _fetch(options: argparse.Namespace) -> int:
    fetch.fetch_dependencies(options.engine, options.cache, _progress)
    for version in options.version:
        print(fetch.fetch(options.engine, version, options.cache, _progress))
    return 0


def _catalog(options: argparse.Namespace) -> int:
    text = catalog.dump(catalog.build(_load(options)))
    if options.output:
        options.output.write_text(text, encoding="utf-8")
    else:
        sys.stdout.write(text)
    return 0


def _judge(options: argparse.Namespace) -> int:
    verdict = _load(options).judge(options.argv)
    print(json.dumps(verdict.as_dict(options.values), indent=1))
    return 0 if verdict.accepted else 1


def _batch(options: argparse.Namespace) -> int:
    release = _load(options)
    if options.catalog:
        options.catalog.write_text(catalog.dump(catalog.build(release)), encoding="utf-8")
    for number, line in enumerate(sys.stdin, start=1):
        if line.strip():
            verdict = release.judge(_words(line, number))
            print(json.dumps(verdict.as_dict(options.values)), flush=True)
    return 0


def _words(line: str, number: int) -> list[str]:
    try:
        case = json.loads(line)
    except ValueError as error:
        raise BadInput(f"line {number} of the input: expected JSON, found {line.strip()[:60]!r} ({error})") from None
    words = case.get("argv") if isinstance(case, dict) else case
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise BadInput(
            f'line {number} of the input: expected a list of words or {{"argv": [...]}}, found {line.strip()[:60]}'
        )
    return words


def _progress(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
