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
from sparkloom.render import template
from sparkloom.render.manifests import names, pod_defaults

NAMESPACE = "kube-system"
NAME = "sparkloom-gpu"
SELECTOR = {"app.kubernetes.io/name": NAME}
RESOURCE = "nvidia.com/gpu"
# The plugin's own file, as an annotation of its pods: with another one they are other pods, and read it.
SHARING, FOLDER, FILE = "sparkloom/gpu-sharing", "/sharing", "config.yaml"


def slices(cluster: Cluster) -> int:
    """How many pods each Spark's GPU is offered to."""
    return serving.MOST if cluster.several else 1


def device_plugin(cluster: Cluster, image: str, runtime_class: str) -> list[dict[str, Any]]:
    """Objects in the order to apply them."""
    objects = template.objects(
        "manifests/gpu",
        image=image,
        runtime_class=runtime_class,
        name=NAME,
        namespace=NAMESPACE,
        labels={**SELECTOR, "app.kubernetes.io/component": "gpu", **names.PART_OF},
        selector=SELECTOR,
        on_sparks=pod_defaults.on_sparks(cluster),
    )
    if slices(cluster) > 1:
        _share(objects[0]["spec"]["template"], slices(cluster))
    return objects


def _share(pod: dict[str, Any], pods: int) -> None:
    """The name stays nvidia.com/gpu, so that pods ask as ever; one that asked for two slices would get one GPU."""
    told = {
        "renameByDefault": False,
        "failRequestsGreaterThanOne": True,
        "resources": [{"name": RESOURCE, "replicas": pods}],
    }
    pod["metadata"]["annotations"] = {SHARING: json.dumps({"version": "v1", "sharing": {"timeSlicing": told}})}
    field = {"fieldPath": f"metadata.annotations['{SHARING}']"}
    file = {"name": "sharing", "downwardAPI": {"items": [{"path": FILE, "fieldRef": field}]}}
    pod["spec"]["volumes"].append(file)
    container = pod["spec"]["containers"][0]
    container["env"].append({"name": "CONFIG_FILE", "value": f"{FOLDER}/{FILE}"})
    container["volumeMounts"].append({"name": "sharing", "mountPath": FOLDER, "readOnly": True})
