"""One StatefulSet of one replica per rank: never two pods of a rank at once, always on the same node.

They start together (Parallel): ranks wait for each other, so an order would be a deadlock. The hash in
the annotation covers all ranks, so that a change anywhere renews every one of them.
"""

from __future__ import annotations

from typing import Any

from sparkloom.inputs.cluster import Cluster
from sparkloom.launch.resolve import Launch, Rank
from sparkloom.render.manifests import names, service


def stateful_set(launch: Launch, cluster: Cluster, rank: Rank, template: dict[str, Any], digest: str) -> dict[str, Any]:
    metadata = template["metadata"]
    annotated = {**metadata, "annotations": {**metadata["annotations"], names.CONFIG_HASH: digest}}
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {
            "name": names.rank(launch, rank.index),
            "namespace": cluster.namespace,
            "labels": names.labels(launch, rank.index),
            "annotations": {names.CONFIG_HASH: digest},
        },
        "spec": {
            "serviceName": service.headless_name(launch),
            "replicas": 1,
            "podManagementPolicy": "Parallel",
            "revisionHistoryLimit": 3,
            "selector": {"matchLabels": names.selector(launch, rank.index)},
            "template": {"metadata": annotated, "spec": template["spec"]},
        },
    }
