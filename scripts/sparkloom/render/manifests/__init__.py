"""build(launch, cluster, policy) -> the Kubernetes objects of one served profile, in the order to apply them.

Beside them the hash over all that a running rank would see change.

Plain data, built once and never changed afterwards. Namespace and network attachments are shared by all
profiles of a cluster; the rest belongs to one and carries its label.
"""

from __future__ import annotations

from typing import Any

from sparkloom.inputs.cluster import Cluster
from sparkloom.launch.resolve import Launch
from sparkloom.render.manifests import access, attachments, files, pod, record, supervision
from sparkloom.render.manifests.dump import to_yaml

__all__ = ["build", "fabric_objects", "to_yaml"]


def build(launch: Launch, cluster: Cluster, policy: str) -> tuple[list[dict[str, Any]], str]:
    networks = attachments.definitions(cluster) if launch.topology.distributed else []
    sets = [pod.stateful_set(launch, cluster, rank) for rank in launch.ranks]
    templates = [one["spec"]["template"] for one in sets]
    supervisor = supervision.contents(launch, policy)
    digest = record.config_hash(launch, templates, networks, supervisor)
    objects = [
        access.namespace(cluster),
        access.priority_class(),
        *networks,
        *files.mapped(launch, cluster.namespace, files.name(launch), files.contents(launch)),
        *supervision.config_maps(launch, cluster.namespace, supervisor),
        record.config_map(launch, cluster, digest),
        *access.of_group(launch, cluster),
        *(pod.stamp(one, digest) for one in sets),
    ]
    return objects, digest


def fabric_objects(cluster: Cluster) -> list[dict[str, Any]]:
    """What the fabric needs in the cluster before any profile: the namespace and every attachment."""
    return [access.namespace(cluster), *attachments.definitions(cluster)]
