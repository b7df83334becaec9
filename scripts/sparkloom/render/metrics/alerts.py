"""What somebody should be told: alerts.yml as rules of Prometheus, each with one line of cause and fix, and a page."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

import yaml

from sparkloom.base import document
from sparkloom.inputs.cluster import Cluster
from sparkloom.onnode.now.pods import HOPELESS
from sparkloom.render.metrics import series

PAGE = "docs/reference/alerts.md"
GROUP = "sparkloom"
PORTS = "<ports>"

Urgency = Literal["critical", "warning"]


class Alert(NamedTuple):
    name: str
    urgency: Urgency  # what Prometheus calls severity
    patience: str  # Prometheus' `for`
    expr: str
    summary: str

    @property
    def runbook(self) -> str:
        return f"{PAGE}#{self.name.lower()}"


@cache
def every() -> tuple[Alert, ...]:
    """Of any site."""
    text = Path(__file__).with_name("alerts.yml").read_text(encoding="utf-8")
    entries = document.own(text.replace("<hopeless>", "|".join(sorted(HOPELESS))))
    return tuple(
        Alert(one["alert"], one["severity"], one["for"], series.selected(one["expr"]), one["summary"])
        for one in entries
    )


def of(cluster: Cluster) -> tuple[Alert, ...]:
    """With the hosts' ports that have cables, by their names here; none of them where no cable leads anywhere."""
    ports = sorted({rail.at(node.name).pf for rail in cluster.fabric.rails for node in cluster.nodes})
    return tuple(
        alert._replace(expr=alert.expr.replace(PORTS, "|".join(ports)))
        for alert in every()
        if ports or PORTS not in alert.expr
    )


def groups(alerts: Sequence[Alert]) -> list[dict[str, Any]]:
    """As a file of rules, and as a PrometheusRule's spec, have them."""
    return [{"name": GROUP, "rules": [_rule(alert) for alert in alerts]}]


def _rule(alert: Alert) -> dict[str, Any]:
    return {
        "alert": alert.name,
        "expr": alert.expr,
        "for": alert.patience,
        "labels": {"severity": alert.urgency},
        "annotations": {"summary": alert.summary, "runbook": alert.runbook},
    }


def text(alerts: Sequence[Alert]) -> str:
    return yaml.safe_dump({"groups": groups(alerts)}, sort_keys=False, width=10_000, allow_unicode=True)
