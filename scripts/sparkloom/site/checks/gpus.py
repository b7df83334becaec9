"""Who offers GPUs to pods? Ours, another device plugin that is there already, or nobody yet."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from sparkloom.inputs.cluster import Cluster
from sparkloom.render.manifests import gpu
from sparkloom.site.checks import Row

Facts = Mapping[str, Any]
# Older ones end with "error getting device memory: Not Supported" on a GB10 (NVIDIA/gpu-operator issue 1794).
OLDEST = (0, 17, 4)


def foreign(facts: Facts) -> list[Mapping[str, Any]]:
    """Device plugins of NVIDIA's GPUs that are not ours, from the cluster's DaemonSets."""
    return [found for found in facts["plugins"] if (found["namespace"], found["name"]) != (gpu.NAMESPACE, gpu.NAME)]


def needed(cluster: Cluster, facts: Facts) -> bool:
    """Ours is kept where it is, and installed where nobody else offers every node's GPU."""
    ours = len(foreign(facts)) < len(facts["plugins"])
    return ours or (not foreign(facts) and bool(missing(cluster, facts)))


def missing(cluster: Cluster, facts: Facts) -> list[Row]:
    return [
        Row(
            node.name,
            "GPU",
            "no allocatable nvidia.com/gpu",
            "1",
            f"kubectl -n {gpu.NAMESPACE} logs -l app.kubernetes.io/name={gpu.NAME}; the driver and the toolkit there",
        )
        for node in cluster.nodes
        if facts["nodes"].get(node.kubernetes_node, {}).get("gpus", 0) < 1
    ]


def judge(cluster: Cluster, facts: Facts, runtime_class: str) -> list[Row]:
    rows = []
    if runtime_class not in facts["runtime_classes"]:
        rows.append(
            Row(
                cluster.name,
                "RuntimeClass",
                f"no '{runtime_class}' (there are: {', '.join(facts['runtime_classes']) or 'none'})",
                "the one that K3s makes when it finds NVIDIA's container toolkit at its start",
                "restart K3s on the nodes (the toolkit came later: systemctl restart k3s, or k3s-agent); on another "
                "Kubernetes configure the runtime in containerd and apply the RuntimeClass yourself",
            )
        )
    for node in cluster.nodes:
        found = facts["nodes"].get(node.kubernetes_node)
        if found is None:
            known = ", ".join(sorted(facts["nodes"])) or "none"
            change = "kubernetes_node in hosts.yml"
            rows.append(Row(node.name, "node", f"no {node.kubernetes_node} (nodes: {known})", "its name", change))
        elif found["gpus"] > 1 and cluster.expect_gb10:
            change = "switch time slicing off in your device plugin: two engines on one GPU share one memory"
            rows.append(Row(node.name, "GPU", f"{found['gpus']} nvidia.com/gpu", "1", change, "warning"))
    for plugin in foreign(facts):
        version = re.search(r":v?(\d+)\.(\d+)\.(\d+)", plugin["image"])
        if version and tuple(map(int, version.groups())) < OLDEST and cluster.expect_gb10:
            where = f"{plugin['namespace']}/{plugin['name']}"
            oldest = ".".join(map(str, OLDEST))
            change = f"upgrade that plugin, or delete {where} and run this again: Sparkloom then installs its own"
            rows.append(Row(cluster.name, "device plugin", f"{where}: {plugin['image']}", f"{oldest} or newer", change))
    return rows


def told(facts: Facts) -> str:
    """Who offers them, in a sentence."""
    if others := foreign(facts):
        names = ", ".join(f"{p['namespace']}/{p['name']} ({p['image']})" for p in others)
        return f"GPUs are offered by {names}, which was here before; nothing of ours is installed"
    if facts["plugins"]:
        return f"GPUs are offered by {gpu.NAMESPACE}/{gpu.NAME} ({facts['plugins'][0]['image']})"
    if any(node["gpus"] for node in facts["nodes"].values()):
        return "GPUs are offered by a plugin on the nodes that is no DaemonSet; nothing of ours is installed"
    return "nobody offers GPUs yet; the device plugin is installed"
