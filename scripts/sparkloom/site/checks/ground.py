"""What else lives on a Spark, judged by the rows of ground.yml: none of it ends a run, each costs something."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from sparkloom.base import document
from sparkloom.base.finding import Finding
from sparkloom.inputs.cluster import Cluster
from sparkloom.render.k3s.config import Machine

LEAST_SWAPPED_GIB = 1  # less is what an idle desktop leaves there


@cache
def rows() -> tuple[Mapping[str, Any], ...]:
    return tuple(document.own(Path(__file__).with_suffix(".yml").read_text(encoding="utf-8")))


def names() -> list[str]:
    return list(dict.fromkeys(row["check"] for row in rows()))


def judge(cluster: Cluster, sparks: Mapping[Machine, Mapping[str, Any]]) -> Iterator[Finding]:
    facts = {machine.name: _facts(cluster, machine, probe) for machine, probe in sparks.items()}
    for row in rows():
        told = {node: _value(row, known[row["fact"]]) for node, known in facts.items()}
        most = Counter(filter(None, told.values())).most_common(1)
        well = ("", most[0][0] if row.get("odd") and most else row.get("unlike", ""))
        for node, value in told.items():
            if value not in well:
                said = {key: row[key].format(value=value, most=well[1]) for key in ("found", "expected", "fix")}
                yield Finding(node, row["check"], said["found"], said["expected"], said["fix"], "warning")


def _facts(cluster: Cluster, machine: Machine, probe: Mapping[str, Any]) -> dict[str, Any]:
    """As the node told them, where they matter: K3s' own network has rules of its own, a driver may not be there."""
    told, memory = dict(probe["ground"]), probe["memory"]["gib"]
    swapped = memory["SwapTotal"] - memory["SwapFree"]
    told["wifi"] = machine.interface if machine.interface in told["wifi"] else ""
    told["forward"] = told["forward"] if told["forward"] == "DROP" and cluster.kubernetes.provider != "k3s" else ""
    told["swap"] = f"{swapped:.1f} GiB" if swapped > LEAST_SWAPPED_GIB else ""
    told["persistence"] = told["persistence"] if probe["driver"]["version"] else ""
    return told


def _value(row: Mapping[str, Any], fact: Any) -> str:
    """A list by its first three."""
    if isinstance(fact, list):
        return ", ".join(fact[:3]) + (f" and {len(fact) - 3} more" if fact[3:] else "")
    return row["fact"] if fact is True else str(fact or "")
