"""Which groups run on a site, asked of its cluster: each one's own record, where its ranks are set up there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sparkloom.base.errors import InputError
from sparkloom.inputs import group_name
from sparkloom.inputs.cluster import Cluster
from sparkloom.launch import fabric, fleet_record
from sparkloom.launch.groups import Running
from sparkloom.onnode.now.groups import Look, label, stopped
from sparkloom.onnode.now.labels import ONLY_KEY
from sparkloom.render.manifests.names import RANK
from sparkloom.site import client
from sparkloom.site.groups import records
from sparkloom.site.groups.records import Record

FUNCTIONS = range(16)  # of a port


def running(cluster: Cluster) -> dict[str, Running]:
    """By the group's name; a cluster that does not answer is refused, as nothing is known then."""
    reached = client.of(cluster)
    look, maps = client.asked(lambda: (_look(reached), reached.records()), cluster)
    return _all(cluster, look, maps, lambda one: records.read(reached, one.served))


def _look(reached: client.Client) -> Look:
    """As much of a look as says which ranks are set up, and which groups are stopped."""
    return Look(sets=reached.engine_sets(), stops=reached.stops())


def of(cluster: Cluster, look: Look) -> dict[str, Running]:
    """The same of a look that was taken."""
    served = {one.map: one.served for one in look.applied}
    return _all(cluster, look, look.records, lambda one: served.get(one.served, {}))


def _all(
    cluster: Cluster, look: Look, told: Sequence[Record], proved: Callable[[Running], Record]
) -> dict[str, Running]:
    there = [one for one in (_running(record, look, cluster) for record in told) if one]
    return {
        one.name: one if one.awake else replace(one, proved=str(proved(one).get("config_hash") or "")) for one in there
    }


def known(cluster: Cluster) -> dict[str, Running]:
    """As the cluster tells it; of one that is not there yet, or is away, what was recorded last."""
    try:
        return running(cluster)
    except InputError:
        return recorded(cluster)


def recorded(cluster: Cluster) -> dict[str, Running]:
    """By build/<site>/fleet.json, without asking anybody."""
    return fleet_record.read(fleet_record.path(cluster.name))


def stopped_by_label(reached: client.Client) -> dict[str, str]:
    """By whom and when each was stopped that is."""
    look, mine = _look(reached), dict[str, list[Any]]()
    for one in look.sets:
        mine.setdefault(label(one), []).append(one)
    return {name: by for name, sets in mine.items() if (by := stopped(sets, look.stops))}


def unrecorded(cluster: Cluster, runs: Mapping[str, Running]) -> dict[str, tuple[str, ...]]:
    """Ranks that are set up and of which no record tells: by their label, and on which Sparks."""
    told = {group_name.label(name) for name in runs}
    found: dict[str, set[str]] = {}
    for one in client.of(cluster).engine_sets():
        if group_name.label(group := label(one)) not in told:
            at = str((one.spec.template.spec.node_selector or {}).get("kubernetes.io/hostname"))
            found.setdefault(group, set()).add(cluster.called.get(at, at))
    return {name: tuple(sorted(nodes)) for name, nodes in sorted(found.items())}


def _running(record: Mapping[str, Any], look: Look, cluster: Cluster) -> Running | None:
    """None of a record whose ranks are gone; one whose pod is being made anew is there."""
    name = str(record.get("group") or record["profile"])
    mine = [one for one in look.sets if label(one) in (name, group_name.label(name))]
    head = next((one for one in mine if one.metadata.labels.get(RANK) == "0"), None)
    if head is None:
        return None
    ranks = sorted(record["ranks"], key=lambda rank: int(rank["rank"]))
    volumes = head.spec.template.spec.volumes or []
    return Running(
        name=name,
        profile=str(record["profile"]),
        nodes=tuple(str(rank["node"]) for rank in ranks),
        vf=_function(ranks[0], cluster),
        fraction=record.get("fraction"),
        only=any(v.name == "key" and v.secret and v.secret.secret_name == ONLY_KEY for v in volumes),
        stopped=stopped(mine, look.stops),
        config_hash=str(record.get("config_hash") or ""),
        # whether a rank of it is wanted: one that sleeps keeps its StatefulSets, without pods
        awake=any(one.spec.replicas != 0 for one in mine),
        whole=len(mine) >= len(ranks),
    )


def _function(rank: Mapping[str, Any], cluster: Cluster) -> int | None:
    """By the address that the rank has on a rail; None of one that has none, or of an inventory that has changed."""
    node = next((node for node in cluster.nodes if node.name == rank["node"]), None)
    if node is None:
        return None
    for rail in cluster.fabric.segments:
        told = str(rank["addresses"].get(rail.name, "")).partition("/")[0]
        found = next((vf for vf in FUNCTIONS if told and fabric.address(cluster, node, rail, vf) == told), None)
        if found is not None:
            return found
    return None
