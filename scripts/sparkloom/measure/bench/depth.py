"""Prompts of any length: words in front of the question, the same ones for all requests or for one alone.

What is the same is what a prefix cache can keep; what is not, it cannot. Words are cheap and known to every tokenizer;
how many tokens they make is asked of the engine, which counts.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import NamedTuple

WORDS: list[str] = json.loads(Path(__file__).with_name("words.json").read_text(encoding="utf-8"))
GUESS = 1.3  # tokens of a word with its blank, until the engine has counted
BEGIN, END = "Notes, of no use for the question at the end:\n", "\n\nThe question: "


class Depth(NamedTuple):
    """`tokens` before the question of every request, of which the share `prefix` is the same for all."""

    tokens: int = 0
    prefix: float = 0.0
    own: int = 0  # tokens more of each, never the same

    @property
    def shared(self) -> int:
        return int(self.tokens * self.prefix)

    @property
    def alone(self) -> int:
        return self.tokens - self.shared + self.own


def words(count: int, key: str) -> str:
    """So many of them, the same ones for the same key."""
    return " ".join(random.Random(key).choices(WORDS, k=count)) if count > 0 else ""


def prompt(question: str, depth: Depth, seed: int, number: int, per_word: float) -> str:
    """The question of request `number` with what stands before it; warm-ups, below 0, have words of their own."""
    if not depth.tokens and not depth.own:
        return question
    shared = words(round(depth.shared / per_word), f"{seed} shared {depth.tokens}")
    alone = words(round(depth.alone / per_word), f"{seed} {depth.tokens} {number}")
    return BEGIN + " ".join(filter(None, (shared, alone))) + END + question
