"""NVIDIA's device plugin: one DaemonSet that offers each Spark's GPU to pods as nvidia.com/gpu.

It asks nothing of the API server, so it has no rights there. It runs with NVIDIA's runtime, or it finds no driver; it
registers at the kubelet through a socket in one folder of the node. One GPU a node, no MIG. A site with one profile
gets it whole. A site with a list (`serve:`) gets every Spark's GPU in as many time slices as a list may have groups,
from the start: what stands where is for the plan to say, and a number that followed it would start the plugin anew each
time.
"""

from __future__ import annotations

import json
from typing import Any

from sparkloom.inputs import serving
from sparkloom.inputs.cluster import Cluster
from sparkloom.render.manifests import names

NAMESPACE = "kube-system"
NAME = "sparkloom-gpu"
SOCKETS = "/var/lib/kubelet/device-plugins"
SELECTOR = {"app.kubernetes.io/name": NAME}
RESOURCE = "nvidia.com/gpu"
# The plugin's own file, as an annotation of its pods: with another one they are other pods, and read it.
SHARING, FOLDER, FILE = "sparkloom/gpu-sharing", "/sharing", "config.yaml"
LABELS = {**SELECTOR, "app.kubernetes.io/component": "gpu", **names.PART_OF}


def slices(cluster: Cluster) -> int:
    """How many pods each Spark's GPU is offered to."""
    return serving.MOST if cluster.several else 1


def device_plugin(cluster: Cluster, image: str, runtime_class: str) -> list[dict[str, Any]]:
    """Objects in the order to apply them."""
    metadata = {"name": NAME, "namespace": NAMESPACE, "labels": dict(LABELS)}
    annotated = {"annotations": {SHARING: _sharing(cluster)}} if slices(cluster) > 1 else {}
    template = {"metadata": {"labels": dict(LABELS), **annotated}, "spec": _pod(cluster, image, runtime_class)}
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
        "containers": [_container(image, shared=slices(cluster) > 1)],
        "volumes": [
            {"name": "sockets", "hostPath": {"path": SOCKETS, "type": "Directory"}},
            *([_sharing_volume()] if slices(cluster) > 1 else []),
        ],
    }


def _sharing(cluster: Cluster) -> str:
    """The name stays nvidia.com/gpu, so that pods ask as ever; one that asked for two slices would get one GPU."""
    sliced = [{"name": RESOURCE, "replicas": slices(cluster)}]
    told = {"renameByDefault": False, "failRequestsGreaterThanOne": True, "resources": sliced}
    return json.dumps({"version": "v1", "sharing": {"timeSlicing": told}})


def _sharing_volume() -> dict[str, Any]:
    field = {"fieldPath": f"metadata.annotations['{SHARING}']"}
    return {"name": "sharing", "downwardAPI": {"items": [{"path": FILE, "fieldRef": field}]}}


def _container(image: str, *, shared: bool) -> dict[str, Any]:
    settings = {
        "FAIL_ON_INIT_ERROR": "true",  # a node without a driver shows as a failing pod, not as one that offers nothing
        "DEVICE_LIST_STRATEGY": "envvar",  # what the RuntimeClass's runtime reads
        "MIG_STRATEGY": "none",
        **({"CONFIG_FILE": f"{FOLDER}/{FILE}"} if shared else {}),
    }
    sharing = [{"name": "sharing", "mountPath": FOLDER, "readOnly": True}] if shared else []
    return {
        "name": "device-plugin",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "env": [{"name": name, "value": value} for name, value in settings.items()],
        "resources": {"requests": {"cpu": "20m", "memory": "64Mi"}, "limits": {"memory": "256Mi"}},
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [{"name": "sockets", "mountPath": SOCKETS}, *sharing],
    }
