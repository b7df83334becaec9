"""Sites of so many Sparks, and what they serve, without a folder: as Ansible hands both over."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sparkloom.base.document import Document
from sparkloom.inputs import inventory, serving
from sparkloom.inputs.cluster import Cluster
from sparkloom.inputs.serving import Serving, Wanted
from sparkloom.judge.fleet import needs
from sparkloom.judge.fleet.needs import Need

SHIPPED = inventory.load()
_known: dict[tuple[Any, ...], Need] = {}
_judge = needs.one


def site(sparks: int, **fabric: Any) -> Cluster:
    """The shipped example with another number of Sparks; nothing was measured on it."""
    first = SHIPPED.nodes[0]
    nodes = [
        first.model_copy(
            update={
                "name": f"spark{number}", "kubernetes_node": f"spark{number}", "fabric_index": number,
                "management_address": f"192.168.1.{10 + number}",
            }
        )
        for number in range(1, sparks + 1)
    ]  # fmt: skip
    rails = {} if sparks > 1 else {"rails": []}
    update = {"nodes": nodes, "name": "nowhere", "fabric": SHIPPED.fabric.model_copy(update={**rails, **fabric})}
    return SHIPPED.model_copy(update=update)


def serves(cluster: Cluster, *items: str | dict[str, Any]) -> Serving:
    return serving.of_document(Document("cluster.yml", {"serve": list(items)}), cluster)


def judged_once(serving: Serving, number: int, cluster: Cluster, entry: Wanted | None = None) -> Need:
    """In place of `needs.one`: what a profile asks for on so many Sparks is worked out once for all lists."""
    asked = entry or serving.entries[number]
    key = (asked.profile, asked.count, len(cluster.nodes))
    if key not in _known:
        _known[key] = _judge(serving, number, cluster, asked)
    return replace(_known[key], number=number, entry=asked, where=serving.where(number))
