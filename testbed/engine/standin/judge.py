"""The verdict of the release's own argument parser, in a process of its own (its imports are large)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

RELEASES = os.environ.get("STANDIN_RELEASES", "/opt/engines")
PROGRAMS = {"sglang": "launch_server.py", "vllm": "vllm serve"}


class Refused(Exception):
    """The engine would not start with these arguments; the text is the engine's own."""


def judge(engine: str, release: str, argv: list[str]) -> dict[str, Any]:
    """What the parser makes of `argv`: every value, defaults included."""
    command = [sys.executable, "-m", "oracle", "--cache", RELEASES, "judge", "--values", engine, release, "--", *argv]
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
