"""What goes wrong, when and where: one shape for what measured runs did and for what a tester asks for."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

STAGES = ("args", "load", "kv", "graph", "serve")
KINDS = {
    "crash": "ends the rank at a stage: stage=args|load|kv|graph|serve [after=REQUESTS] [least=CONCURRENT] [text=...]",
    "hang": "stops for ever at a stage: stage=load|kv|graph|serve",
    "illegal-instruction": "one rank dies of it while it serves: [after=REQUESTS] [least=CONCURRENT]",
    "garbage": "answers rubbish: [form=flood|loop|salad] [after=TOKENS] [least=CONCURRENT]",
    "errors": "every request fails, the server lives: [text=...] [least=CONCURRENT]",
    "slow": "loading takes longer: [seconds=60]",
    "dead": "/health says 200, no token comes",
    "socket": "no RDMA device is found, whatever the node has",
}


@dataclass(frozen=True)
class Trouble:
    kind: str
    stage: str = "serve"
    text: str = ""
    after: int = 0  # requests before a crash, tokens before garbage
    least: int = 1  # requests at once that it needs
    form: str = "flood"
    seconds: float = 60
    only: str = ""  # words of a command line with commas between; a launch that lacks one is left alone
    anywhere: bool = False  # hits one rank of the group, not each
    source: str = ""


def parse(kind: str, words: list[str]) -> Trouble:
    """`crash stage=load after=2` as a Trouble; ValueError says what is wrong with it."""
    if kind not in KINDS:
        raise ValueError(f"'{kind}' is no fault; known: {', '.join(KINDS)}")
    types = {field.name: field.type for field in fields(Trouble)}
    settings: dict[str, Any] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or name not in types or name in ("kind", "anywhere", "source"):
            raise ValueError(f"{kind}: found '{word}', expected {KINDS[kind]}")
        try:
            settings[name] = {"int": int, "float": float}.get(str(types[name]), str)(value)
        except ValueError:
            raise ValueError(f"{kind}: {name} wants a number, found '{value}'") from None
    if settings.get("stage", "serve") not in STAGES:
        raise ValueError(f"{kind}: stage is one of {', '.join(STAGES)}, found '{settings['stage']}'")
    return Trouble(kind, source="asked for", **settings)


def faults(command: str) -> list[Trouble]:
    """What `testbed engine` wrote beside this node's weights; read anew each time, so it works on a running rank."""
    place = os.environ.get("STANDIN_FAULTS") or Path(os.environ.get("HF_HUB_CACHE") or "/models") / ".stand-in.json"
    try:
        entries = json.loads(Path(place).read_text())
        known = [Trouble(**entry) for entry in entries]
    except (OSError, ValueError, TypeError):
        return []
    return [fault for fault in known if all(words in command for words in fault.only.split(","))]
