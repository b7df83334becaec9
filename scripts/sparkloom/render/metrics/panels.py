"""Every panel of every dashboard, as panels.yml has them; dashboards.py makes Grafana's JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

import yaml

from sparkloom.render.metrics import series

FILE = Path(__file__).with_name("panels.yml")
Kind = Literal["timeseries", "stat", "table", "state-timeline"]


class Panel(NamedTuple):
    title: str
    exprs: tuple[tuple[str, str], ...]  # (query, legend)
    unit: str = "short"
    kind: Kind = "timeseries"
    width: int = 12  # of 24
    most: float | None = None
    help: str = ""


class Dashboard(NamedTuple):
    name: str
    title: str
    variables: tuple[tuple[str, str], ...]  # (name, query of its values)
    panels: tuple[Panel, ...]


def _read() -> Iterator[Dashboard]:
    for told in yaml.safe_load(FILE.read_text(encoding="utf-8")):
        variables = tuple(told.get("variables", {}).items())
        yield Dashboard(told["name"], told["title"], variables, tuple(map(_panel, told["panels"])))


def _panel(told: Mapping[str, Any]) -> Panel:
    exprs = tuple((series.spelled(query), legend) for legend, query in told["queries"].items())
    return Panel(exprs=exprs, **{key: value for key, value in told.items() if key != "queries"})


EVERY = tuple(_read())
