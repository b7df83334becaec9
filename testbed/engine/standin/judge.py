"""The verdict of the release's own argument parser, in a process of its own (its imports are large)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

from standin import catalog

RELEASES = os.environ.get("STANDIN_RELEASES", "/opt/engines")
PROGRAMS = {"sglang": "launch_server.py", "vllm": "vllm serve"}


class Refused(Exception):
    """The engine would not start with these arguments; the text is the engine's own, `status` its exit status."""

    def __init__(self, text: str, status: int = 2) -> None:
        super().__init__(text)
        self.status = status


def judge(engine: str, release: str, argv: list[str]) -> dict[str, Any]:
    """What the parser makes of `argv`: every value, defaults included."""
    if engine not in PROGRAMS:
        return _by_catalog(engine, release, argv)
    words = ["vllm", *argv] if engine == "vllm" else argv
    command = [sys.executable, "-m", "oracle", "--cache", RELEASES, "judge", "--values", engine, release, "--", *words]
    done = subprocess.run(command, capture_output=True, text=True)
    try:
        verdict = json.loads(done.stdout)
    except ValueError:
        raise RuntimeError(
            f"stand-in: the parser of {engine} {release} did not answer: {done.stderr.strip()[-600:]}"
        ) from None
    for text in verdict["deprecated"]:
        print(text, file=sys.stderr, flush=True)
    if not verdict["accepted"]:
        raise Refused(f"usage: {PROGRAMS[engine]} [options]\n{PROGRAMS[engine]}: error: {verdict['error']}")
    values: dict[str, Any] = verdict["values"]
    return values


def _by_catalog(engine: str, release: str, argv: list[str]) -> dict[str, Any]:
    """Engines without a parser in Python that could run here: their flags are listed by hand."""
    try:
        return catalog.parse(engine, release, argv)
    except catalog.BadLine as problem:
        raise Refused(str(problem), problem.status) from None
