"""Prometheus' text format, as far as we read and write it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from typing import NamedTuple

KIND = "text/plain; version=0.0.4; charset=utf-8"
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
        if abs(value) < 2.0**63:  # else it is endless, NaN, or no figure of anybody's
            yield Sample(name, labels.removeprefix("{"), value)


# a family's name -> ours, and how several series (ranks, models) become one figure: sum, max, mean, counter
Names = Mapping[str, tuple[str, str]]


def figures(page: bytes, names: Names) -> dict[str, float]:
    """Our names and their values; numbers that are none are left out."""
    found: dict[str, list[float]] = defaultdict(list)
    how = dict(names.values())
    for sample in samples(page.decode(errors="replace"), names):
        found[names[sample.name][0]].append(sample.value)
    return {ours: _joined(how[ours], values) for ours, values in found.items()}


def _joined(how: str, values: list[float]) -> float:
    return max(values) if how == "max" else sum(values) / (len(values) if how == "mean" else 1)


Labelled = tuple[Mapping[str, str], float]


class Family(NamedTuple):
    """All lines of one name; `read` gives them, of what it is asked about."""

    name: str
    kind: str
    help: str
    read: Callable[..., Iterable[Labelled]] = lambda *about: ()

    def text(self, told: Iterable[Labelled]) -> str:
        """Nothing at all where there are none."""
        lines = [f"{self.name}{{{labels(named)}}} {value:.15g}\n" for named, value in told]
        head = f"# HELP {self.name} {self.help}\n# TYPE {self.name} {self.kind}\n"
        return "".join([head, *lines]) if lines else ""


def labels(named: Mapping[str, str]) -> str:
    """As they stand between the braces."""
    return ",".join(f'{name}="{_escaped(value)}"' for name, value in named.items())


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
