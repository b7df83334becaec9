"""What ends with one group of a site that serves several: its objects, its functions of the rails, its kernels."""

from __future__ import annotations

from typing import Any

from sparkloom.case import Inventory
from sparkloom.inputs.cluster import Cluster
from sparkloom.launch import fabric, groups
from sparkloom.onnode.now.groups import Observed
from sparkloom.render.manifests import names, pod
from sparkloom.site import nodefiles, now


def to_end(cluster: Cluster, inventory: Inventory, word: str) -> dict[str, Any]:
    """For `teardown.plan`: what is the group's alone; a name that nothing here has is refused."""
    site = now.read(inventory)
    member = site.one(word)
    runs, image = site.runs.get(member.name), str(member.record.get("image") or "")
    cache = pod.cache_of(member.name, image, cluster)
    return {
        "functions": _functions(cluster, member, runs.vf if runs else None),
        "kernels": [cache, f"{cache}.sealed"] if image else [],
        "own": {
            "name": member.name,
            "labels": sorted({names.marked(member.name), member.label}),
            # Without its label, since the next group may have it; of this one it says nothing any more.
            "also": [["ConfigMap", member.kept_in]] if member.served else [],
        },
    }


def _functions(cluster: Cluster, member: Observed, vf: int | None) -> dict[str, list[dict[str, str]]]:
    """By node those that its pods have: one rank has none, and those of other groups stay in their pods."""
    none: dict[str, list[dict[str, str]]] = {node.name: [] for node in cluster.nodes}
    if vf is None or len(member.nodes) < 2:
        return none
    seated = groups.seated(cluster, vf)
    nodes = nodefiles.every(seated, fabric.plan(seated))
    mine = {e.interface for e in fabric.plan(seated).endpoints if e.vf == vf}
    found = {name: [f for f in nodes[name]["functions"] if f["interface"] in mine] for name in member.nodes}
    return {**none, **found}
