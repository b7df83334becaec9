"""Who offers GPUs to pods? Ours, another device plugin that is there already, or nobody yet. And to how many?"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from sparkloom.base.finding import Finding
from sparkloom.inputs.cluster import Cluster
from sparkloom.render.manifests import gpu
from sparkloom.site.checks import kubernetes

Facts = Mapping[str, Any]
# Older ones end with "error getting device memory: Not Supported" on a GB10 (NVIDIA/gpu-operator issue 1794).
OLDEST = (0, 17, 4)


def foreign(facts: Facts) -> list[Mapping[str, Any]]:
    """Device plugins of NVIDIA's GPUs that are not ours, from the cluster's DaemonSets."""
    return [plugin for plugin in facts["plugins"] if (plugin["namespace"], plugin["name"]) != (gpu.NAMESPACE, gpu.NAME)]


def needed(cluster: Cluster, facts: Facts) -> bool:
    """Ours is kept where it is, and installed where nobody else offers every node's GPU."""
    return ours(facts) or (not foreign(facts) and any(offered == 0 for _, offered in _offered(cluster, facts)))


def ours(facts: Facts) -> bool:
    return len(foreign(facts)) < len(facts["plugins"])


def missing(cluster: Cluster, facts: Facts) -> list[Finding]:
    """Nodes that do not offer what they should: of ours just so many, of another's one at least."""
    wanted = gpu.slices(cluster) if ours(facts) else 1
    logs = f"kubectl -n {gpu.NAMESPACE} logs -l app.kubernetes.io/name={gpu.NAME}; the driver and the toolkit there"
    return [
        Finding(node, "GPU", _counted(offered), str(wanted), logs)
        for node, offered in _offered(cluster, facts)
        if offered < wanted or (ours(facts) and offered != wanted)
    ]


def _offered(cluster: Cluster, facts: Facts) -> list[tuple[str, int]]:
    nodes = facts["nodes"]
    return [(node.name, int(nodes.get(node.kubernetes_node, {}).get("gpus", 0))) for node in cluster.nodes]


def _counted(offered: int) -> str:
    return f"{offered} nvidia.com/gpu" if offered else "no allocatable nvidia.com/gpu"


def judge(cluster: Cluster, facts: Facts, runtime_class: str) -> list[Finding]:
    findings = []
    if runtime_class not in facts["runtime_classes"]:
        there = f" (there are: {', '.join(facts['runtime_classes']) or 'none'})"
        findings.append(kubernetes.no_runtime_class(cluster, runtime_class, there))
    for node in cluster.nodes:
        state = facts["nodes"].get(node.kubernetes_node)
        if state is None:
            findings.append(kubernetes.absent(node, facts["nodes"]))
        elif cluster.expect_gb10 and not ours(facts) and (finding := _slices(cluster, node.name, state["gpus"])):
            findings.append(finding)
    for plugin in foreign(facts):
        version = re.search(r":v?(\d+)\.(\d+)\.(\d+)", plugin["image"])
        if version and tuple(map(int, version.groups())) < OLDEST and cluster.expect_gb10:
            where = f"{plugin['namespace']}/{plugin['name']}"
            expected = f"{'.'.join(map(str, OLDEST))} or newer"
            fix = f"upgrade that plugin, or delete {where} and run this again: Sparkloom then installs its own"
            findings.append(Finding(cluster.name, "device plugin", f"{where}: {plugin['image']}", expected, fix))
    return findings


def _slices(cluster: Cluster, node: str, offered: int) -> Finding | None:
    """What somebody else's plugin offers: to one pod where there is one group, to several where some may share."""
    if offered > 1 and not cluster.several:
        fix = "switch time slicing off in your device plugin: two engines on one GPU share one memory"
        return Finding(node, "GPU", _counted(offered), "1", fix, "warning")
    if offered == 1 and cluster.several:
        fix = (
            "groups with a fraction need one each; your device plugin's own configuration says how many there are: "
            f"sharing.timeSlicing.resources: [{{name: {gpu.RESOURCE}, replicas: {gpu.slices(cluster)}}}], under the "
            "same name (renameByDefault: false)"
        )
        expected = f"{gpu.slices(cluster)}, where groups share a Spark"
        return Finding(node, "GPU", _counted(offered), expected, fix, "warning")
    return None


def who_offers(facts: Facts) -> str:
    """Who offers them, in a sentence."""
    most = max((node["gpus"] for node in facts["nodes"].values()), default=0)
    each = f", each to {most} pods" if most > 1 else ""
    if others := foreign(facts):
        names = ", ".join(f"{p['namespace']}/{p['name']} ({p['image']})" for p in others)
        return f"GPUs are offered by {names}{each}, which was here before; nothing of ours is installed"
    if facts["plugins"]:
        return f"GPUs are offered by {gpu.NAMESPACE}/{gpu.NAME} ({facts['plugins'][0]['image']}){each}"
    if any(node["gpus"] for node in facts["nodes"].values()):
        return "GPUs are offered by a plugin on the nodes that is no DaemonSet; nothing of ours is installed"
    return "nobody offers GPUs yet; the device plugin is installed"
