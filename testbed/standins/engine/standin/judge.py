"""The verdict of the release's own argument parser, in a process of its own (its imports are large)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Collection, Sequence
from typing import Any

from standin import catalog

RELEASES = os.environ.get("STANDIN_RELEASES", "/opt/engines")
PROGRAMS = {"sglang": "launch_server.py", "vllm": "vllm serve"}


class BadArguments(Exception):
    """The engine would not start with these arguments; the text is the engine's own, `status` its exit status."""

    def __init__(self, text: str, status: int = 2) -> None:
        super().__init__(text)
        self.status = status


def apart(argv: Sequence[str], own: Collection[str]) -> tuple[list[str], dict[str, str]]:
    """All words but the flags that a fork of the engine adds, and those with their values."""
    kept: list[str] = []
    taken: dict[str, str] = {}
    flag = ""
    for word in argv:
        if word.startswith("--"):
            flag = word if word in own else ""
        if not flag:
            kept.append(word)
        elif word != flag:
            taken[flag] = f"{taken[flag]} {word}".strip()
        else:
            taken[flag] = ""
    return kept, taken


def of_the_fork() -> list[str]:
    """Flags that the image's engine takes beyond its release, by the word of the profile that names it."""
    return os.environ.get("STANDIN_FORK", "").split()


def judge(engine: str, release: str, argv: list[str]) -> dict[str, Any]:
    """What the parser makes of `argv`: every value, defaults included; and a fork's own, which nothing judges."""
    argv, own = apart(argv, of_the_fork())
    unjudged = {flag[2:].replace("-", "_"): value for flag, value in own.items()}
    if engine not in PROGRAMS:
        return {**_by_catalog(engine, release, argv), **unjudged}
    (verdict,) = verdicts(engine, release, [argv])
    return {**accepted(engine, verdict), **unjudged}


def verdicts(engine: str, release: str, lines: list[list[str]]) -> list[dict[str, Any]]:
    """The parser's word on each line; one process for all of them."""
    head = ["vllm", "serve"] if engine == "vllm" else []
    whole = [[*head, *(line[1:] if line[:1] == ["serve"] else line)] if head else line for line in lines]
    command = [sys.executable, "-m", "oracle", "--cache", RELEASES, "batch", "--values", engine, release]
    asked = "".join(json.dumps(line) + "\n" for line in whole)
    done = subprocess.run(command, capture_output=True, text=True, input=asked)
    try:
        answers = [json.loads(line) for line in done.stdout.splitlines()]
    except ValueError:
        answers = []
    if len(answers) != len(lines):
        raise RuntimeError(f"stand-in: the parser of {engine} {release} did not answer: {done.stderr.strip()[-600:]}")
    return answers


def accepted(engine: str, verdict: dict[str, Any]) -> dict[str, Any]:
    """The values of an accepted line; BadArguments with the engine's usage line and message otherwise."""
    for text in verdict["deprecated"]:
        print(text, file=sys.stderr, flush=True)
    if not verdict["accepted"]:
        raise BadArguments(f"usage: {PROGRAMS[engine]} [options]\n{PROGRAMS[engine]}: error: {verdict['error']}")
    values: dict[str, Any] = verdict["values"]
    return values


def _by_catalog(engine: str, release: str, argv: list[str]) -> dict[str, Any]:
    """Engines without a parser in Python that could run here: their flags are listed by hand."""
    try:
        return catalog.parse(engine, release, argv)
    except catalog.BadLine as problem:
        raise BadArguments(str(problem), problem.status) from None
