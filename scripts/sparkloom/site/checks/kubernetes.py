"""Has the cluster what a served profile asks for? Judged before applying: controllers retry ever more slowly."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from sparkloom.base.finding import Finding
from sparkloom.inputs.cluster import Cluster, Node
from sparkloom.onnode.now.labels import NETWORKS
from sparkloom.site import client
from sparkloom.site.checks import networks


def judge(cluster: Cluster, objects: list[dict[str, Any]], facts: Mapping[str, Any]) -> list[Finding]:
    """The nodes that the rendered ranks name, and the cluster itself."""
    pods = [item["spec"]["template"] for item in objects if item["kind"] == "StatefulSet"]
    wanted = {str(pod["spec"]["nodeSelector"]["kubernetes.io/hostname"]) for pod in pods}
    nodes = [node for node in cluster.nodes if node.kubernetes_node in wanted]
    shares = _fraction(objects)
    found = (finding for node in nodes for finding in _node(node, facts["nodes"], shares))
    return [*_shared(cluster, pods, facts), *found]


def names(cluster: Cluster, pods: tuple[int, int] | None) -> list[Finding]:
    """The name service: serving goes on without it, pods that are made anew do not find what they look for by name."""
    if pods is None or pods[0]:
        return []
    found = f"no ready pod behind kube-system/kube-dns ({pods[1]} there)"
    change = "kubectl -n kube-system describe pod -l k8s-app=kube-dns says why; playbooks/cluster.yml starts K3s again"
    return [Finding(cluster.name, "CoreDNS", found, "one at least", change)]


def silent(cluster: Cluster, error: Exception) -> Finding:
    """The API server gave no answer: one line, not the client's page of text."""
    why = " ".join(str(getattr(error, "reason", "") or error).split())[:120]
    where = client.kubeconfig(cluster)
    change = f"is its server up? {where} (cluster.kubernetes.kubeconfig in cluster.yml) says where it is"
    return Finding(cluster.name, "API server", f"no answer ({why})", "an answer", change)


def _shared(cluster: Cluster, pods: list[dict[str, Any]], facts: Mapping[str, Any]) -> Iterator[Finding]:
    classes = {pod["spec"].get("runtimeClassName") for pod in pods} - {None}
    for name in sorted(classes if not facts["runtime_class"] else ()):
        yield no_runtime_class(cluster, name)
    needed = {str(network["name"]) for pod in pods for network in _networks(pod)}
    yield from networks.judge(cluster, needed, facts["attachments"])


def no_runtime_class(cluster: Cluster, name: str, there: str = "") -> Finding:
    expected = "the one that K3s makes when it finds NVIDIA's container toolkit at its start"
    fix = (
        "install the toolkit on the nodes, restart K3s there (systemctl restart k3s, or k3s-agent); on another "
        "Kubernetes configure the runtime in containerd and apply the RuntimeClass yourself"
    )
    return Finding(cluster.name, "RuntimeClass", f"no '{name}'{there}", expected, fix)


def _networks(pod: Mapping[str, Any]) -> list[dict[str, Any]]:
    return list(json.loads(pod["metadata"]["annotations"].get(NETWORKS, "[]")))


def _fraction(objects: list[dict[str, Any]]) -> float | None:
    """The share of its Sparks that the group was given; none where it has them alone."""
    told = [json.loads(item["data"]["record.json"]) for item in objects if "record.json" in item.get("data", {})]
    return next((one["fraction"] for one in told if one.get("fraction")), None)


def absent(node: Node, known: Mapping[str, Any]) -> Finding:
    """A node that the cluster does not have under the name that the site says."""
    message = f"no {node.kubernetes_node} (nodes: {', '.join(sorted(known)) or 'none'})"
    return Finding(node.name, "node", message, "its name", "kubernetes_node in hosts.yml")


def _node(node: Node, known: Mapping[str, Mapping[str, Any]], shares: float | None) -> Iterator[Finding]:
    state = known.get(node.kubernetes_node)
    if state is None:
        yield absent(node, known)
        return
    if not state["ready"]:
        yield Finding(node.name, "node", "not Ready", "Ready", f"kubectl describe node {node.kubernetes_node}")
    if state["cordoned"]:
        yield Finding(node.name, "node", "cordoned", "schedulable", f"kubectl uncordon {node.kubernetes_node}")
    if state["gpus"] < 1:
        fix = "the device plugin: kubectl get pods -A | grep plugin"
        yield Finding(node.name, "GPU", "no allocatable nvidia.com/gpu", "1", fix)
    elif state["gpus"] == 1 and shares:
        fix = (
            "playbooks/gpu.yml has it offered to several pods; another's device plugin has its own setting for that "
            "(sharing.timeSlicing); a group without fraction has its Sparks alone"
        )
        found = f"1 nvidia.com/gpu, for a group with fraction: {shares:g}"
        yield Finding(node.name, "GPU", found, "one for each group that may share it", fix)
