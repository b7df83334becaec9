"""A small Prometheus for a site that has none: one pod, history kept by size, rights to read pods of our namespace."""

from __future__ import annotations

import hashlib
from typing import Any

import yaml

from sparkloom.inputs.cluster import Cluster
from sparkloom.render import template
from sparkloom.render.manifests import names, pod_defaults
from sparkloom.render.metrics import alerts, labels, scrapes

NOBODY = 65534
SPARE = 2  # the disk that is asked for, over what is kept: blocks are joined beside the old ones


def objects(cluster: Cluster, image: str, keep_gb: int) -> list[dict[str, Any]]:
    """Objects in the order to apply them."""
    texts = files(cluster)
    digest = hashlib.sha256("\0".join(texts.values()).encode()).hexdigest()[:16]
    return template.objects(
        "manifests/prometheus",
        image=image,
        namespace=cluster.namespace,
        labels={**labels.OURS, **labels.PROMETHEUS},
        selector=labels.PROMETHEUS,
        annotations={names.CONFIG_HASH: digest},
        files=texts,
        keep_gb=keep_gb,
        disk_gib=keep_gb * SPARE,
        port=labels.PROMETHEUS_PORT,
        sparks=sorted(node.kubernetes_node for node in cluster.nodes),
        unprivileged=pod_defaults.unprivileged(NOBODY, fsGroup=NOBODY),
        locked=pod_defaults.locked(),
        readers={labels.READER: "true"},
    )


def files(cluster: Cluster) -> dict[str, str]:
    config = yaml.safe_dump(scrapes.config(cluster), sort_keys=False, width=10_000)
    return {"prometheus.yml": config, "rules.yml": alerts.text(alerts.of(cluster))}


def peer(cluster: Cluster) -> dict[str, Any]:
    """Itself, as a policy of who is asked names it."""
    return {"podSelector": {"matchLabels": dict(labels.PROMETHEUS)}}
