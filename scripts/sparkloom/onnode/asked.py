"""A program that is asked: its command as a word, JSON in on standard input, JSON out; a refusal is an answer too."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from typing import Any

Commands = Mapping[str, Callable[[Any], Any]]


def run(name: str, words: list[str], commands: Commands, refusal: Callable[[Exception], str]) -> int:
    """`refusal`: what an error says to the one who asked; empty where it is none that he could do something about."""
    if len(words) != 1 or words[0] not in commands:
        print(f"usage: {name} {'|'.join(commands)}  (JSON on standard input)", file=sys.stderr)
        return 2
    try:
        answer = {"answer": commands[words[0]](json.loads(sys.stdin.read() or "{}"))}
    except Exception as error:
        if not (said := refusal(error)):
            raise
        answer = {"error": said}
    print(json.dumps(answer), flush=True)
    return int("error" in answer)
