"""Prometheus' text form, read strictly: for tests of what we write and of what we pass on."""

from __future__ import annotations

import re
from typing import NamedTuple

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LINE = re.compile(rf"({NAME})(?:\{{(.*)\}})? (\S+)(?: \d+)?")
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(?:,|$)')


class Sample(NamedTuple):
    name: str
    labels: dict[str, str]
    value: float


def read(text: str) -> list[Sample]:
    """Every sample; what a scraper would refuse is an error, a series that stands there twice too."""
    assert not text or text.endswith("\n")
    found, seen, typed = [], set(), dict[str, str]()
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name not in typed, f"twice: {line}"
            typed[name] = kind
        if not line or line.startswith("#"):
            continue
        match = LINE.fullmatch(line)
        assert match, line
        pairs = LABEL.findall(match[2] or "")
        assert "".join(f'{key}="{value}",' for key, value in pairs).rstrip(",") == (match[2] or "").rstrip(","), line
        labels = dict(pairs)
        assert len(labels) == len(pairs), line
        key = (match[1], *sorted(labels.items()))
        assert key not in seen, f"twice: {line}"
        seen.add(key)
        found.append(Sample(match[1], labels, float(match[3])))
    return found


def one(samples: list[Sample], name: str, **labels: str) -> float:
    """The value of the one series that has these labels."""
    fit = [s for s in samples if s.name == name and labels.items() <= s.labels.items()]
    assert len(fit) == 1, (name, labels, fit)
    return fit[0].value
