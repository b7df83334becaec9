"""A small Prometheus for a site that has none: one pod, history kept by size, rights to read pods of our namespace."""

from __future__ import annotations

import hashlib
from typing import Any

import yaml

from sparkloom.inputs.cluster import Cluster
from sparkloom.render.manifests import names, pod_defaults
from sparkloom.render.metrics import alerts, labels, scrapes

NAME = "prometheus"
NOBODY = 65534
HISTORY = "prometheus-history"
SPARE = 2  # the disk that is asked for, over what is kept: blocks are joined beside the old ones


def objects(cluster: Cluster, image: str, keep_gb: int) -> list[dict[str, Any]]:
    """Objects in the order to apply them."""
    texts = files(cluster)
    return [
        names.manifest("v1", "ServiceAccount", _meta(cluster), automountServiceAccountToken=False),
        _role(cluster),
        _binding(cluster),
        names.manifest("v1", "ConfigMap", _meta(cluster), data=texts),
        _volume(cluster, keep_gb),
        _deployment(cluster, image, keep_gb, texts),
        names.service(_meta(cluster), labels.PROMETHEUS, {"web": labels.PROMETHEUS_PORT}),
        _policy(cluster),
    ]


def files(cluster: Cluster) -> dict[str, str]:
    config = yaml.safe_dump(scrapes.config(cluster), sort_keys=False, width=10_000)
    return {"prometheus.yml": config, "rules.yml": alerts.text(alerts.of(cluster))}


def peer(cluster: Cluster) -> dict[str, Any]:
    """Itself, as a policy of who is asked names it."""
    return {"podSelector": {"matchLabels": dict(labels.PROMETHEUS)}}


def _meta(cluster: Cluster, name: str = NAME) -> dict[str, Any]:
    return labels.meta(name, cluster.namespace, labels.PROMETHEUS)


def _role(cluster: Cluster) -> dict[str, Any]:
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]}]
    return names.manifest(names.RIGHTS, "Role", _meta(cluster), rules=rules)


def _binding(cluster: Cluster) -> dict[str, Any]:
    role = {"apiGroup": names.RBAC, "kind": "Role", "name": NAME}
    subjects = [{"kind": "ServiceAccount", "name": NAME, "namespace": cluster.namespace}]
    return names.manifest(names.RIGHTS, "RoleBinding", _meta(cluster), roleRef=role, subjects=subjects)


def _volume(cluster: Cluster, keep_gb: int) -> dict[str, Any]:
    """Of the cluster's default class: K3s' makes a folder on the node where the pod first runs."""
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": f"{keep_gb * SPARE}Gi"}}}
    return names.manifest("v1", "PersistentVolumeClaim", _meta(cluster, HISTORY), spec=spec)


def _deployment(cluster: Cluster, image: str, keep_gb: int, texts: dict[str, str]) -> dict[str, Any]:
    digest = hashlib.sha256("\0".join(texts.values()).encode()).hexdigest()[:16]
    template = {
        "metadata": {"labels": {**labels.OURS, **labels.PROMETHEUS}, "annotations": {names.CONFIG_HASH: digest}},
        "spec": _pod(cluster, image, keep_gb),
    }
    spec = {
        "replicas": 1,
        "strategy": {"type": "Recreate"},  # two would write one history
        "selector": {"matchLabels": dict(labels.PROMETHEUS)},
        "template": template,
    }
    return names.manifest("apps/v1", "Deployment", _meta(cluster), spec=spec)


def _pod(cluster: Cluster, image: str, keep_gb: int) -> dict[str, Any]:
    """Rather on a machine that serves nothing, where there is one: a Spark's memory is its engine's."""
    hosts = sorted(node.kubernetes_node for node in cluster.nodes)
    elsewhere = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "NotIn", "values": hosts}]}
    preferred = [{"weight": 100, "preference": elsewhere}]
    return {
        "serviceAccountName": NAME,
        "automountServiceAccountToken": True,
        "enableServiceLinks": False,
        "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}},
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
        "securityContext": pod_defaults.unprivileged(NOBODY, fsGroup=NOBODY),
        "containers": [_container(image, keep_gb)],
        "volumes": [
            {"name": "config", "configMap": {"name": NAME}},
            {"name": "history", "persistentVolumeClaim": {"claimName": HISTORY}},
        ],
    }  # fmt: skip


def _container(image: str, keep_gb: int) -> dict[str, Any]:
    ask = {"httpGet": {"path": "/-/ready", "port": "web", "scheme": "HTTP"}}
    return {
        "name": NAME,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "args": [
            "--config.file=/etc/prometheus/prometheus.yml",
            "--storage.tsdb.path=/prometheus",
            f"--storage.tsdb.retention.size={keep_gb}GB",
            "--storage.tsdb.retention.time=1y",
            f"--web.listen-address=:{labels.PROMETHEUS_PORT}",
        ],
        "ports": [{"name": "web", "containerPort": labels.PROMETHEUS_PORT}],
        "resources": {"requests": {"cpu": "50m", "memory": "192Mi"}, "limits": {"memory": "1Gi"}},
        "securityContext": pod_defaults.locked(),
        "startupProbe": {**ask, "periodSeconds": 5, "failureThreshold": 120},  # it reads its history first
        "readinessProbe": {**ask, "periodSeconds": 10},
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [
            {"name": "config", "mountPath": "/etc/prometheus", "readOnly": True},
            {"name": "history", "mountPath": "/prometheus"},
        ],
    }


def _policy(cluster: Cluster) -> dict[str, Any]:
    """It knows who used what: no engine may ask it. `kubectl port-forward` needs no way in.

    Its own way out stays open: it asks the API server, whose address no selector names.
    """
    readers = [{"namespaceSelector": {"matchLabels": {labels.READER: "true"}}}]
    heard = [{"from": readers, "ports": [{"protocol": "TCP", "port": labels.PROMETHEUS_PORT}]}]
    return names.network_policy(_meta(cluster), labels.PROMETHEUS, ingress=heard)
