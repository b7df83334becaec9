"""Dashboards: whole, without overlap, and asking for series that somebody gives."""

from __future__ import annotations

import json
import re
from itertools import combinations
from typing import Any

import pytest

from sparkloom.render.metrics import dashboards
from tests.render.metrics.test_alerts import given, names_in

MADE = {name: json.loads(text) for name, text in dashboards.files().items()}
KINDS = {"timeseries", "stat", "table", "state-timeline"}


def overlap(one: dict[str, int], other: dict[str, int]) -> bool:
    across = one["x"] < other["x"] + other["w"] and other["x"] < one["x"] + one["w"]
    return across and one["y"] < other["y"] + other["h"] and other["y"] < one["y"] + one["h"]


@pytest.mark.parametrize("name", MADE)
def test_it_is_whole(name: str) -> None:
    made: dict[str, Any] = MADE[name]
    assert name == f"{made['uid']}.json" and made["title"] and made["schemaVersion"] >= 39
    assert len({panel["id"] for panel in made["panels"]}) == len(made["panels"])
    for panel in made["panels"]:
        assert panel["type"] in KINDS and panel["title"] and panel["targets"]
        place = panel["gridPos"]
        assert place["x"] >= 0 and place["x"] + place["w"] <= 24
        assert len({target["refId"] for target in panel["targets"]}) == len(panel["targets"])
    for one, other in combinations(made["panels"], 2):
        assert not overlap(one["gridPos"], other["gridPos"]), (one["title"], other["title"])
    known = {variable["name"] for variable in made["templating"]["list"]} | {"__rate_interval", "__range"}
    used = set(re.findall(r"\$\{?(\w+)", json.dumps([panel["targets"] for panel in made["panels"]])))
    assert used <= known, used - known


@pytest.mark.parametrize(
    ("expr", "title"),
    [
        (expr, f"{one.name}: {panel.title}")
        for one in dashboards.every()
        for panel in one.panels
        for expr, _ in panel.exprs
    ],
)
def test_a_panel_asks_for_series_that_somebody_gives(expr: str, title: str) -> None:
    asked = names_in(re.sub(r"(?:by|on) \([^)]*\)", "", expr))
    assert asked and asked <= given(), (title, asked - given())


def test_every_series_of_ours_is_shown_or_watched() -> None:
    """What nobody looks at need not be told."""
    from sparkloom.render.metrics import alerts

    text = json.dumps([MADE, [alert["expr"] for alert in alerts.every()]])
    unused = {name for name in given() if name.startswith("sparkloom_") and name not in text}
    assert unused <= {"sparkloom_gpu_memory_used_bytes", "sparkloom_gpu_memory_total_bytes"}
