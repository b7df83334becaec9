"""What somebody should be told: alerts.yml as rules of Prometheus, each with one line of cause and fix, and a page."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from sparkloom.base import document
from sparkloom.inputs.cluster import Cluster
from sparkloom.onnode.now.pods import HOPELESS
from sparkloom.render.metrics import series

PAGE = "docs/reference/alerts.md"
GROUP = "sparkloom"
PORTS = "<ports>"

Rule = dict[str, Any]  # in Prometheus' own words


@cache
def every() -> tuple[Rule, ...]:
    """Of any site."""
    text = Path(__file__).with_name("alerts.yml").read_text(encoding="utf-8")
    return tuple(map(_rule, document.own(text.replace("<hopeless>", "|".join(sorted(HOPELESS))))))


def _rule(alert: dict[str, str]) -> Rule:
    return {
        "alert": alert["alert"],
        "expr": series.selected(alert["expr"]),
        "for": alert["for"],
        "labels": {"severity": alert["severity"]},
        "annotations": {"summary": alert["summary"], "runbook": f"{PAGE}#{alert['alert'].lower()}"},
    }


def of(cluster: Cluster) -> tuple[Rule, ...]:
    """With the hosts' ports that have cables, by their names here; none of them where no cable leads anywhere."""
    ports = sorted({rail.at(node.name).pf for rail in cluster.fabric.rails for node in cluster.nodes})
    return tuple(
        {**rule, "expr": rule["expr"].replace(PORTS, "|".join(ports))}
        for rule in every()
        if ports or PORTS not in rule["expr"]
    )


def groups(rules: Sequence[Rule]) -> list[dict[str, Any]]:
    """As a file of rules, and as a PrometheusRule's spec, have them."""
    return [{"name": GROUP, "rules": list(rules)}]


def text(rules: Sequence[Rule]) -> str:
    return yaml.safe_dump({"groups": groups(rules)}, sort_keys=False, width=10_000, allow_unicode=True)
