"""What `make demo` shows of one model: what it answered, how fast, over which rails, by whose word it may start."""

from __future__ import annotations

import json
import shutil
import textwrap
from pathlib import Path

from sparkloom.base import repository
from sparkloom.cli import show, watching
from sparkloom.inputs import profile as profiles
from sparkloom.onnode import smoke
from sparkloom.site import logs, now, status
from testbed.standins.hub import smollm

ACCEPTED = "accepted the command line"  # the stand-in's words (testbed/standins/engine/standin/main.py)
LINES = 3  # of an answer
WIDEST = 120
QUESTION = smoke.PROMPT


def parsers(inventory: Path) -> list[str]:
    """What each rank's log says of the engine's own parser, each once."""
    words = set()
    for rank in status.status(inventory)["ranks"]:
        lines = logs.logs(inventory, int(rank["rank"]), follow=False, previous=False)
        words |= {line.split("no GPU here; ")[-1] for line in lines if ACCEPTED in line}
    return sorted(words)


def engine(profile: str) -> str:
    """By what the answer was made: the engine itself, or what stands in for it."""
    loaded = profiles.load(profile).profile
    if smollm.known(loaded.model.id):
        return f"{loaded.engine.name} {loaded.engine.release} itself, on CPU: a real model, its own words"
    return f"a stand-in for {loaded.engine.name} {loaded.engine.release}: no GPU here, so its words are made up"


def answer(site: str, inventory: Path, profile: str) -> str:
    """The name by which it answers."""
    folder = repository.kept(site)
    answer = json.loads((folder / f"{profile}.answer.json").read_text())
    transport = json.loads((folder / f"{profile}.transport.json").read_text())
    rails = f"over the rails by {transport['verdict']}" if transport.get("verdict") else "its ranks talk TCP"
    tell(f"{answer['model']}, by {engine(profile)}:")
    print("\n".join(quoted(answer["text"] or answer["reasoning"])))
    figures = f"{answer['tokens']} tokens at {answer['tokens_per_second']:.0f} tok/s, through TLS with a key, {rails}"
    tell("; ".join([figures, *parsers(inventory)]), "  ")
    return str(answer["model"])


def tell(text: str, indent: str = "") -> None:
    """Wrapped at words."""
    width = min(shutil.get_terminal_size().columns, WIDEST)
    for line in text.splitlines():
        print(textwrap.fill(line, width, initial_indent=indent, subsequent_indent=indent + "  "), flush=True)


def quoted(text: str) -> list[str]:
    room = min(shutil.get_terminal_size().columns, WIDEST) - 4
    lines = textwrap.wrap(" ".join(text.split()), room, max_lines=LINES, placeholder=" ...")
    return [f"  > {line}" for line in lines]


def memory(inventory: Path) -> None:
    """Of the four Sparks, as bars: those of `sparkloom status --watch`."""
    terminal = show.console()
    tell("memory of each Spark: h the host, A the model, - the model's alone", "  ")
    for line in watching.bars(terminal, next(now.looks(inventory))):
        terminal.print(line)
