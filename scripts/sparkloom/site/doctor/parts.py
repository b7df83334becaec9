"""Which of the roles' tasks the doctor asks, and in which order: the plans, then each machine once, then the judges.

A task is asked dry with its own arguments. Which may be asked at all says parts.yml; the tasks stand in the roles.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from sparkloom.base import document


class Part(NamedTuple):
    """The tasks of one file of a role."""

    role: str
    file: str


TABLE = document.own(Path(__file__).with_name("parts.yml").read_text())
PLANS = tuple((Part(entry["role"], entry["file"]), entry["register"]) for entry in TABLE["plans"])
ON_A_NODE, ON_THE_CONTROLLER = frozenset(TABLE["on_a_node"]), frozenset(TABLE["on_the_controller"])
APPLIED = "kubernetes.core.k8s"
OF_THE_NODES = tuple(Part(**entry) for entry in TABLE["of_the_nodes"])
WEIGHTS = Part("model_serving", "weights")  # of each group
OF_THE_CLUSTER = tuple(Part(**entry) for entry in TABLE["of_the_cluster"])


def k3s_is_ours(known: Mapping[str, Any]) -> bool:
    """A cluster that was there before is neither planned nor touched."""
    site = known["__node_base_site"].get("site", {})
    return bool(site.get("kubernetes", {}).get("provider") == "k3s")


def of_a_node(host: str, known: Mapping[str, Any], *, spark: bool) -> Iterator[Part]:
    """A server beside the Sparks has K3s and nothing else of ours."""
    yield Part("preflight", "main")
    site = known["__node_base_site"].get("site", {})
    if spark:
        yield Part("node_base", "main")
        yield Part("metrics", "hosts")
        if site.get("expect_gb10"):
            yield Part("gpu_runtime", "host")
        if known["__roce_fabric_plan"].get("rails"):
            yield from (Part("roce_fabric", file) for file in ("foreign", "functions", "private", "addresses", "probe"))
            yield Part("multus", "main")
    if own := known["__k3s_plan"].get("hosts", {}).get(host):
        yield Part("k3s", "cluster")
        yield Part("k3s", "first" if own["first"] else "join")
