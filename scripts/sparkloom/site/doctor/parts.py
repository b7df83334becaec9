"""Which of the roles' tasks the doctor asks, and in which order: the plans, then each machine once, then the judges.

A task is asked dry with its own arguments. Which modules may be asked at all stands here; the tasks stand in the roles.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple


class Part(NamedTuple):
    """The tasks of one file of a role."""

    role: str
    file: str


# What is planned once for all, and known to everything below by the name that the role registers it under.
PLANS = (
    (Part("node_base", "main"), "__node_base_site"),
    (Part("roce_fabric", "plan"), "__roce_fabric_plan"),
    (Part("preflight", "main"), "__preflight_plan"),
    (Part("k3s", "cluster"), "__k3s_plan"),
    (Part("multus", "main"), "__multus_plan"),
    (Part("model_serving", "weights"), "__model_serving_weights"),
)
# What has a dry run, or only reads.
ON_A_NODE = frozenset({
    "ansible.builtin.command", "cdi", "definitions", "files", "k3s_state", "machine", "netplan", "probe", "sysctl",
    "units",
})  # fmt: skip
ON_THE_CONTROLLER = frozenset({
    "cluster.forget_metrics", "cluster.gpus", "cluster.metrics", "cluster.multus_objects",
    "cluster.page", "cluster.wait",
    "fabric.foreign", "fabric.plan", "fabric.rails", "gateway.clear", "gateway.prepare", "gateway.prove", "groups.look",
    "router.give", "site.plan", "site.preflight", "site.preflight_reads", "waker.give",
    "weights.judge", "weights.models",
})  # fmt: skip
APPLIED = "kubernetes.core.k8s"
# Of the nodes together, and what needs no cluster to be told.
OF_THE_NODES = (
    Part("preflight", "main"),
    Part("roce_fabric", "foreign"),
    Part("roce_fabric", "probe"),
    Part("model_serving", "weights"),
)
WEIGHTS = Part("model_serving", "weights")  # of each group, where there are several
OF_THE_CLUSTER = (
    Part("multus", "main"),
    Part("gpu_runtime", "cluster"),
    Part("model_serving", "look"),
    Part("gateway", "main"),
    Part("page", "main"),
    Part("metrics", "cluster"),
)
OF_A_GROUP = tuple(part for part in OF_THE_CLUSTER if part.role == "model_serving")


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
