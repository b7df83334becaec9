"""Which groups run on a site, asked of its cluster: what each one's own record says, where its pods are there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sparkloom.base.errors import InputError
from sparkloom.inputs import group_name
from sparkloom.inputs.cluster import Cluster
from sparkloom.inputs.fleet_record import Running
from sparkloom.launch import fabric
from sparkloom.render.manifests.names import ENGINES, PROFILE, RANK
from sparkloom.site import client

FUNCTIONS = range(16)  # of a port


def running(cluster: Cluster) -> dict[str, Running]:
    """By the group's name; a cluster that does not answer is refused, as nothing is known then."""
    from kubernetes.client import ApiException
    from urllib3.exceptions import HTTPError

    try:
        reached = client.of(cluster)
        pods, records = reached.pods(ENGINES), reached.records()
    except (ApiException, HTTPError) as error:
        reason = getattr(error, "reason", "") or error
        message = f"the cluster does not answer: {reason}; cluster.kubernetes.kubeconfig names it"
        raise InputError.single(client.kubeconfig(cluster), message, rule="no-cluster") from None
    heads = {str(pod.metadata.labels.get(PROFILE)): pod for pod in pods if pod.metadata.labels.get(RANK) == "0"}
    return {one.name: one for one in (_running(record, heads, cluster) for record in records) if one}


def _running(record: Mapping[str, Any], heads: Mapping[str, Any], cluster: Cluster) -> Running | None:
    """None of a record whose pods are gone."""
    name = str(record.get("group") or record["profile"])
    head = heads.get(name) or heads.get(group_name.label(name))
    if head is None:
        return None
    ranks = sorted(record["ranks"], key=lambda rank: int(rank["rank"]))
    return Running(
        name=name,
        profile=str(record["profile"]),
        nodes=tuple(str(rank["node"]) for rank in ranks),
        vf=_function(ranks[0], cluster),
        fraction=record.get("fraction"),
        engine_key=next((v.secret.secret_name for v in head.spec.volumes or [] if v.name == "key" and v.secret), ""),
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
