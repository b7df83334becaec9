"""Prometheus' text format, as far as we read it."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator
from typing import NamedTuple

END_OF_NAME = re.compile(r"[{ \t]")


class Sample(NamedTuple):
    name: str
    labels: str  # as they stand between the braces
    value: float

    def label(self, name: str) -> str:
        found = re.search(rf'(?:^|,){name}="((?:[^"\\]|\\.)*)"', self.labels)
        return found[1] if found else ""


def samples(page: str, wanted: Container[str]) -> Iterator[Sample]:
    """Those of these names, in the page's order; a line whose value is no number is passed over."""
    for line in page.split("\n"):
        name = END_OF_NAME.split(line, maxsplit=1)[0]
        if name not in wanted:
            continue
        labels, _, rest = line[len(name) :].rpartition("}")
        try:
            value = float(rest.split()[0])  # a time may follow
        except (ValueError, IndexError):
            continue
        yield Sample(name, labels.removeprefix("{"), value)
