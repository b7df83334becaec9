"""dashboards.yml as Grafana's JSON: files to import, and ConfigMaps that Grafana's sidecar finds by their label."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from sparkloom.base import document
from sparkloom.inputs.cluster import Cluster
from sparkloom.render import template
from sparkloom.render.manifests import names
from sparkloom.render.metrics import labels, series

HEIGHT, STAT_HEIGHT, WIDE = 8, 4, 24
FOUND = {"grafana_dashboard": "1"}
SOURCE = {"type": "prometheus", "uid": "${source}"}


class Panel(NamedTuple):
    title: str
    exprs: tuple[tuple[str, str], ...]  # (query, legend)
    unit: str = "short"
    kind: str = "timeseries"
    width: int = 12  # of 24
    most: float | None = None
    help: str = ""


class Dashboard(NamedTuple):
    name: str
    title: str
    variables: tuple[tuple[str, str], ...]  # (name, query of its values)
    panels: tuple[Panel, ...]


@cache
def every() -> tuple[Dashboard, ...]:
    entries = document.own(Path(__file__).with_name("dashboards.yml").read_text(encoding="utf-8"))
    return tuple(
        Dashboard(one["name"], one["title"], tuple(one["variables"].items()), tuple(map(_read, one["panels"])))
        for one in entries
    )


def _read(panel: dict[str, Any]) -> Panel:
    exprs = tuple((series.selected(expr), legend) for legend, expr in panel["exprs"].items())
    return Panel(**{**panel, "exprs": exprs})


def name(dashboard: Dashboard) -> str:
    return f"sparkloom-{dashboard.name}"


def files() -> dict[str, str]:
    return {f"{name(one)}.json": json.dumps(made(one), indent=1) + "\n" for one in every()}


def config_maps(cluster: Cluster) -> list[dict[str, Any]]:
    return [
        names.manifest(
            "v1",
            "ConfigMap",
            labels.meta(f"{name(one)}-dashboard", cluster.namespace, FOUND),
            data={f"{name(one)}.json": json.dumps(made(one), separators=(",", ":"))},
        )
        for one in every()
    ]


def made(dashboard: Dashboard) -> dict[str, Any]:
    asked = [
        template.one("metrics/variable", name=called, query=query, source=SOURCE)
        for called, query in dashboard.variables
    ]
    return template.one(
        "metrics/dashboard",
        name=name(dashboard),
        title=dashboard.title,
        panels=list(_placed(dashboard.panels)),
        variables=[template.one("metrics/source"), *asked],
    )


def _placed(panels: tuple[Panel, ...]) -> Iterator[dict[str, Any]]:
    """Row by row, each as high as its highest."""
    x = y = high = 0
    for number, panel in enumerate(panels, 1):
        height = STAT_HEIGHT if panel.kind == "stat" else HEIGHT
        if x + panel.width > WIDE:
            x, y, high = 0, y + high, 0
        yield _panel(number, panel, {"x": x, "y": y, "w": panel.width, "h": height})
        x, high = x + panel.width, max(high, height)


def _panel(number: int, panel: Panel, place: dict[str, int]) -> dict[str, Any]:
    defaults: dict[str, Any] = {"unit": panel.unit, "min": 0, **({} if panel.most is None else {"max": panel.most})}
    read = {"format": "table", "instant": True} if panel.kind == "table" else {}
    targets = [
        {"refId": chr(ord("A") + index), "datasource": SOURCE, "expr": expr, "legendFormat": legend, **read}
        for index, (expr, legend) in enumerate(panel.exprs)
    ]
    made = template.one(
        "metrics/panel",
        number=number,
        title=panel.title,
        kind=panel.kind,
        place=place,
        source=SOURCE,
        defaults=defaults,
        targets=targets,
    )
    return made | ({"description": panel.help} if panel.help else {})
