"""The commands that the pages tell people to type: read from them as they are written."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.places import REPO

PAGES = (
    REPO / "README.md", REPO / "CONTRIBUTING.md", REPO / "molecule/README.md", REPO / "inventories/gb10/README.md",
    *sorted(REPO.glob("docs/**/*.md")),
)  # fmt: skip
OURS = ("sparkloom", "ansible-playbook", "molecule", "pytest", "python", "make", "cp")
BEGINS = re.compile(rf"(?:[A-Z_]+=\S+ +)*(?:\.venv/bin/)?(?:{'|'.join(OURS)})(?= )")
# What a page writes in place of a reader's own.
FOR = {
    "NAME": "nvidia--glm-4.7-nvfp4",
    "PROFILE": "nvidia--glm-4.7-nvfp4",
    "OTHER": "nvidia--glm-4.7-nvfp4--mtp",
    "CELL": "0001",
    "ADDRESS": "192.0.2.1",
    "INVENTORY": "inventories/gb10",
    "inventories/home": "inventories/gb10",
    "grid.yml": "testbed/trials/grid.yml",
    "ultra-moe.yml": "testbed/trials/grid.yml",
    "ROWS.jsonl": "scripts/sparkloom/judge/data/measured_rows.jsonl",
}


class Command(NamedTuple):
    page: str
    line: int
    text: str  # as it is written
    block: bool  # to be copied, and no mention in a sentence

    def __str__(self) -> str:
        return f"{self.page}:{self.line}: {self.text}"

    @property
    def words(self) -> list[str]:
        """Less comments, with optional parts, and with something real in each place that the reader fills."""
        text = re.split(r" +# |\s[|>&]", self.text)[0]
        words = shlex.split(re.sub(r"[\[\]]", "", text))
        return [filled(word) for word in words if not re.fullmatch(r"[A-Z_]+=\S+", word)]

    @property
    def program(self) -> str:
        return self.words[0].removeprefix(".venv/bin/")


def filled(word: str) -> str:
    for written, real in FOR.items():
        word = re.sub(rf"(?<![\w./-]){re.escape(written)}(?![\w-])", real, word)
    return word


def commands() -> list[Command]:
    return [command for page in PAGES for command in _of(page)]


def _of(page: Path) -> Iterator[Command]:
    """A page with prompts shows a window: a journey types what stands behind them, all else there is output."""
    if "\n$ " in page.read_text():
        return
    name, fenced, lines = str(page.relative_to(REPO)), False, page.read_text().splitlines()
    for number, line in enumerate(lines, 1):
        if line.startswith("```"):
            fenced = not fenced
        elif fenced or line.startswith("    "):
            text = line.strip()
            while text.endswith("\\"):
                text = text[:-1] + lines[number].strip()
                number += 1
            drawn = any("▼" in near or "── " in near for near in lines[max(0, number - 3) : number + 2])
            if BEGINS.match(text) and not drawn:
                yield Command(name, number, text, block=True)
        else:
            spoken = (match[1] for match in re.finditer(r"`([^`]+)`", line))
            told = (text for text in spoken if BEGINS.match(text) and "<" not in text)
            yield from (Command(name, number, text, block=False) for text in told)
