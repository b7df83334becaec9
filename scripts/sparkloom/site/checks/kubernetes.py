"""Has the cluster what a served profile asks for? Judged before applying: controllers retry ever more slowly."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sparkloom.base.finding import Finding
from sparkloom.inputs.cluster import Cluster, Node
from sparkloom.launch.resolve import Launch
from sparkloom.site import client
from sparkloom.site.checks import networks

RUNTIME_CLASS = "nvidia"  # of every rank's pod (render/manifests/rank.yml)


def judge(cluster: Cluster, launch: Launch, facts: Mapping[str, Any]) -> list[Finding]:
    """The cluster itself, and the nodes of the ranks."""
    found = [] if RUNTIME_CLASS in facts["runtime_classes"] else [no_runtime_class(cluster, RUNTIME_CLASS)]
    joined = {end.attachment for rank in launch.ranks for end in rank.place.endpoints}
    found += networks.judge(cluster, joined, facts["attachments"])
    shares = launch.seat.fraction if launch.seat else None
    for rank in launch.ranks:
        found += _node(rank.place.node, facts["nodes"], shares)
    return found


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


def no_runtime_class(cluster: Cluster, name: str, there: str = "") -> Finding:
    expected = "the one that K3s makes when it finds NVIDIA's container toolkit at its start"
    ours = "install the toolkit on the nodes, restart K3s there (systemctl restart k3s, or k3s-agent)"
    theirs = "on another Kubernetes configure the runtime in containerd and apply the RuntimeClass yourself"
    return Finding(cluster.name, "RuntimeClass", f"no '{name}'{there}", expected, f"{ours}; {theirs}")


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
        theirs = "another's device plugin has its own setting for that (sharing.timeSlicing)"
        alone = "a group without fraction has its Sparks alone"
        fix = f"playbooks/gpu.yml has it offered to several pods; {theirs}; {alone}"
        found = f"1 nvidia.com/gpu, for a group with fraction: {shares:g}"
        yield Finding(node.name, "GPU", found, "one for each group that may share it", fix)
