"""What somebody should be told, as rules of Prometheus: each with its patience, one line of cause and fix, a page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import yaml

from sparkloom.inputs.cluster import Cluster
from sparkloom.onnode.now.pods import HOPELESS
from sparkloom.render.metrics import series

FILE = Path(__file__).with_name("alerts.yml")
PAGE = "docs/reference/alerts.md"
GROUP = "sparkloom"

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


def _read() -> tuple[Alert, ...]:
    hopeless = "|".join(sorted(HOPELESS))
    return tuple(
        Alert(one["alert"], one["severity"], one["for"], series.spelled(one["expr"], hopeless=hopeless), one["summary"])
        for one in yaml.safe_load(FILE.read_text(encoding="utf-8"))
    )


ALERTS = _read()


def of(cluster: Cluster) -> tuple[Alert, ...]:
    """With the names that ports with cables have here; less the alert on them where no cable leads anywhere."""
    ports = sorted({rail.at(node.name).pf for rail in cluster.fabric.rails for node in cluster.nodes})
    filled = (one._replace(expr=one.expr.replace("$ports", "|".join(ports))) for one in ALERTS)
    return tuple(new for old, new in zip(ALERTS, filled, strict=True) if ports or old == new)


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
