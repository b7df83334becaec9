"""docs/first-hour.md is a transcript: each command on it is typed here, in its order, and says what stands below it.

SPARKLOOM_UPDATE_GOLDEN=1 .venv/bin/pytest -q -n0 tests/journeys/test_first_hour.py    # writes the page anew
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.golden_files import UPDATE
from tests.journeys.conftest import Sparks
from tests.journeys.terminal import Terminal
from tests.journeys.test_first_evening import _state
from tests.places import REPO

PAGE = REPO / "docs" / "first-hour.md"
BLOCK = re.compile(r"^```\n(\$ (?:(?!```).*\n)*)```$", re.M)
HOME = "/srv/owner"  # as short as a person's
LONGEST, BEGIN, END = 19, 8, 5  # lines of an output that stand on the page
LOG = """\
INFO 11-26 19:02:11 [core.py:58] Initializing a V1 LLM engine
INFO 11-26 19:02:31 [gpu_worker.py:298] Available KV cache memory: -1.32 GiB
ERROR 11-26 19:02:40 [core.py:718] ValueError: No available memory for the cache blocks.
RuntimeError: Engine core initialization failed. See root cause above.
"""
FACTS = re.compile(r"^(cause: |\[\.\.\. ).*(?=^not up after)", re.M | re.S)  # of whichever machine this runs on
VARIES = ((r"\d+(\.\d+)? s\b", "N s"), (r"\d+ (d|mo|y)\b", "N mo"), (r"SHA256:\S+", "a key"), (r"\s+", " "))


@pytest.fixture
def owner(home: Path, programs: Path, sparks: Sparks) -> Iterator[Terminal]:
    collections = home / ".local/share/sparkloom"
    collections.mkdir(parents=True)
    (collections / "collections").symlink_to(REPO / ".venv/collections")  # fetched once before
    (home / "rank0.log").write_text(LOG)
    shell = ("unshare", "--mount", "bash", "--norc", "--noprofile", "--noediting")
    made = Terminal(home, path=f"{sparks.path}:{programs}", shell=shell)
    made.type(f"mount -t tmpfs tmpfs /srv; mkdir {HOME}; mount --bind {home} {HOME}; export HOME={HOME}; cd")
    yield made
    made.close()


def test_the_page_is_what_an_owner_sees(owner: Terminal, sparks: Sparks) -> None:
    before, page, shown = _state(), PAGE.read_text(), []
    for block in BLOCK.findall(page):
        for command, expected in commands(block):
            shown.append(typed(owner, command, sparks))
            if not os.environ.get(UPDATE):
                assert same(shown[-1]) == same(expected), f"`{command}` says:\n{shown[-1]}"
    assert _state() == before
    if os.environ.get(UPDATE):
        said = iter(shown)
        again = (
            "".join(f"$ {command}\n{next(said)}\n" for command, _ in commands(block)) for block in BLOCK.findall(page)
        )
        PAGE.write_text(BLOCK.sub(lambda _: f"```\n{next(again)}```", page))


def commands(block: str) -> list[tuple[str, str]]:
    """Each with what it showed."""
    parts = (part.partition("\n") for part in re.split(r"^\$ ", block, flags=re.M)[1:])
    return [(command, said) for command, _, said in parts]


def typed(owner: Terminal, command: str, sparks: Sparks) -> str:
    owner.begin(command)
    for question, answer in questions(command, sparks):
        owner.sees(question)
        owner.sees(": ")
        owner.answer(answer)
    return cut(owner.end(None, copied="connect" in command).text)


def questions(command: str, sparks: Sparks) -> list[tuple[str, str]]:
    if not command.startswith("sparkloom init"):
        return []
    return [("Sparks", " ".join(sparks.addresses)), ("user", "nvidia"), ("profile", ""), ("yes or no", "yes")]


def cut(text: str) -> str:
    """What is left out is said."""
    lines = [line.rstrip() for line in text.strip("\n").splitlines()]
    if len(lines) > LONGEST:
        lines[BEGIN:-END] = [f"[... {len(lines) - BEGIN - END} more lines ...]"]
    return "\n".join(lines)


def same(text: str) -> str:
    """Without what differs from day to day, and from machine to machine."""
    text = FACTS.sub("cause and fix\n", text)
    for pattern, word in VARIES:
        text = re.sub(pattern, word, text)
    return text.strip()
