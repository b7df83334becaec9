"""NVIDIA's device plugin: one DaemonSet that offers each Spark's GPU to pods as nvidia.com/gpu.

It asks nothing of the API server, so it has no rights there. It runs with NVIDIA's runtime, or it finds no driver; it
registers at the kubelet through a socket in one folder of the node. One GPU a node: no time slicing, no MIG.
"""

from __future__ import annotations

from typing import Any

from sparkloom.inputs.cluster import Cluster
from sparkloom.render.manifests import names

NAMESPACE = "kube-system"
NAME = "sparkloom-gpu"
SOCKETS = "/var/lib/kubelet/device-plugins"
SELECTOR = {"app.kubernetes.io/name": NAME}
LABELS = {**SELECTOR, "app.kubernetes.io/component": "gpu", **names.PART_OF}


def device_plugin(cluster: Cluster, image: str, runtime_class: str) -> list[dict[str, Any]]:
    """Objects in the order to apply them."""
    metadata = {"name": NAME, "namespace": NAMESPACE, "labels": dict(LABELS)}
    template = {"metadata": {"labels": dict(LABELS)}, "spec": _pod(cluster, image, runtime_class)}
    return [names.daemon_set(metadata, SELECTOR, template)]


def _pod(cluster: Cluster, image: str, runtime_class: str) -> dict[str, Any]:
    hosts = sorted(node.kubernetes_node for node in cluster.nodes)
    named = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": hosts}]}
    return {
        "runtimeClassName": runtime_class,
        "priorityClassName": "system-node-critical",
        "automountServiceAccountToken": False,
        # servers without a GPU are nodes too
        "affinity": {
            "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [named]}}
        },
        "tolerations": [{"operator": "Exists"}],
        "containers": [_container(image)],
        "volumes": [{"name": "sockets", "hostPath": {"path": SOCKETS, "type": "Directory"}}],
    }


def _container(image: str) -> dict[str, Any]:
    settings = {
        "FAIL_ON_INIT_ERROR": "true",  # a node without a driver shows as a failing pod, not as one that offers nothing
        "DEVICE_LIST_STRATEGY": "envvar",  # what the RuntimeClass's runtime reads
        "MIG_STRATEGY": "none",
    }
    return {
        "name": "device-plugin",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "env": [{"name": name, "value": value} for name, value in settings.items()],
        "resources": {"requests": {"cpu": "20m", "memory": "64Mi"}, "limits": {"memory": "256Mi"}},
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [{"name": "sockets", "mountPath": SOCKETS}],
    }
