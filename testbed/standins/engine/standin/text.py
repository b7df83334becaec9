"""Readable text without a model: seeded, never the same sentence twice in a row, one token a word piece."""

from __future__ import annotations

import random
from collections.abc import Iterator

SUBJECTS = [
    "the rail", "a rank", "the scheduler", "each expert", "the switch", "one Spark",
    "the cache", "a request", "the kernel", "the router", "an operator", "the profile",
]  # fmt: skip
VERBS = [
    "reads", "keeps", "moves", "checks", "shares", "orders",
    "measures", "hides", "joins", "splits", "returns", "records",
]  # fmt: skip
OBJECTS = [
    "a block of weights", "the next token", "its neighbour's state", "half of the link",
    "a page of memory", "the oldest batch", "two gigabytes", "the address table",
    "a warm graph", "every third layer", "the plan", "a short queue",
]  # fmt: skip
WAYS = [
    "without waiting", "in one step", "before the others", "over both rails", "as the plan says", "twice an hour",
    "at full speed", "when asked", "in the same order", "with care", "by name", "after a pause",
]  # fmt: skip
LOOP = [" the", " answer", " is", " that", " the", " answer", " is", " that", " we", " must", " say"]
SALAD = ["qu", "ing", "ta", "_re", "fs", "tion", "7", ")))", "esp", "ßen", "ver", "ka", "ndo", "##", "lu"]


def tokens(seed: str) -> Iterator[str]:
    """An endless stream of pieces; the same seed gives the same stream."""
    source = random.Random(seed)
    number = 0
    while True:
        number += 1
        words = f"{source.choice(SUBJECTS)} {source.choice(VERBS)} {source.choice(OBJECTS)} {source.choice(WAYS)}"
        if source.random() < 0.3:
            words += f", and {source.choice(SUBJECTS)} {source.choice(VERBS)} {source.randrange(2, 900)} of them"
        sentence = words[0].upper() + words[1:] + "."
        pieces = sentence.split(" ")
        yield (" " if number > 1 else "") + pieces[0]
        for piece in pieces[1:]:
            yield " " + piece
        if number % 5 == 0:
            yield "\n\n"


def garbage(form: str, seed: str) -> Iterator[str]:
    """What a broken kernel says: one token for ever, a phrase for ever, or words from nowhere."""
    source = random.Random(seed)
    place = 0
    while True:
        if form == "salad":
            yield source.choice(SALAD) + (" " if source.random() < 0.4 else "")
        else:
            yield "!" if form == "flood" else LOOP[place % len(LOOP)]
        place += 1
