"""What a reader finds in somebody's file: programs with their words, and everything that it did not understand."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sparkloom.base import document
from sparkloom.base.errors import InputError
from sparkloom.base.visible import cut

Programs = Mapping[str, Sequence[Sequence[str]]]  # engine -> the ways in which a command line begins that starts it
LONGEST = 160  # characters of somebody's words that are shown
WORDS = 1_000  # behind an engine's program: each release's parser reads them
MARK = "#| "  # before each line of what `sparkloom export` writes beside plain commands


@dataclass(frozen=True, slots=True)
class Leftover:
    """One thing of the source that is in no profile, and why."""

    what: str
    why: str


class Leftovers(list[Leftover]):
    def add(self, what: str, why: str) -> None:
        self.append(Leftover(what, why))


@dataclass(slots=True)
class Started:
    """One engine as the source starts it: its words behind the program's, its environment, its image."""

    engine: str
    words: list[str]
    where: str
    image: str = ""
    env: dict[str, str] = field(default_factory=dict)
    leftover: Leftovers = field(default_factory=Leftovers)  # of this start: options of its container, unknown values
    files: dict[str, str] = field(default_factory=dict)  # path in the container -> text, where the source writes it
    mounts: dict[str, str] = field(default_factory=dict)  # path in the container -> path of the author's machine

    def __post_init__(self) -> None:
        if len(self.words) > WORDS:
            message = f"{self.engine} is started with {len(self.words):,} words; expected {WORDS:,} at most"
            raise InputError.single(self.where, message, rule="unreadable")


@dataclass(slots=True)
class Found:
    """A source as a whole. `starts` are of one launch (one per node) or of several, of which one is picked."""

    form: str
    where: str
    starts: list[Started]
    model: str = ""  # hub id that stands beside the command
    revision: str = ""
    least_nodes: int = 1
    most_nodes: int | None = None
    summary: str = ""
    claim: str = ""  # what the source says of itself: verified, official
    leftover: Leftovers = field(default_factory=Leftovers)
    kept: dict[str, Any] = field(default_factory=dict)  # what `sparkloom export` wrote beside the command


def by_flag(words: Sequence[str], dash: str = "-") -> list[list[str]]:
    """Each flag with the words behind it; those before the first flag are a group of their own."""
    groups: list[list[str]] = []
    for word in words:
        if word.startswith(dash) or not groups:
            groups.append([word])
        else:
            groups[-1].append(word)
    return groups


def variables(said: object) -> list[str]:
    """`NAME=value` of a mapping, or of a list of such texts or of small mappings."""
    if isinstance(said, dict):
        return [name if value is None else f"{name}={as_text(value)}" for name, value in said.items()]
    items = said if isinstance(said, list) else []
    return [one for item in items for one in (variables(item) if isinstance(item, dict) else [str(item)])]


def as_text(value: object) -> str:
    """A value of YAML as a command line has it."""
    if isinstance(value, dict | list):
        return json.dumps(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


_SECRETS = re.compile(r"\bhf_(?!overrides)[^\W_]{8,}|(?<=--api-key[ =])\S+|(?<=--token[ =])\S+|\bsk-[\w-]{8,}")


def short(words: str) -> str:
    """Somebody's words in one line, no secret among them."""
    return cut(_SECRETS.sub("(secret)", " ".join(words.split())), LONGEST)


def kept(text: str, name: str) -> dict[str, Any]:
    """The facts that no command holds, as `sparkloom export` wrote them in comments beside it."""
    lines = re.findall(r"^#\| ?(.*)$", text, re.MULTILINE)
    if not lines:
        return {}
    return dict(document.parse("\n".join(lines) + "\n", f"{name}, its lines with {MARK.strip()}").data)


def marked(text: str) -> str:
    """The same the other way round: YAML text as a block of comments."""
    return "".join(f"{MARK}{line}".rstrip() + "\n" for line in text.splitlines())
