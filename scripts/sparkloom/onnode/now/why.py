"""Why a pod waits, in words that name the thing and its cure: what Kubernetes tells in events of five lines."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from sparkloom.onnode.now.labels import HOSTNAME

ATTACHMENT = re.compile(r"network-attachment-definition(?:s\S*)? ?[(\"]+([\w.-]+)")
FILES = re.compile(r"(configmap|secret)s? \"([\w.-]+)\" not found", re.I)
LINK = re.compile(r"(?:Link not found|failed to find host device|no net directory)[^\n]*", re.I)
PULL = ("ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull")
KINDS = {"configmap": "ConfigMap", "secret": "Secret"}
LONGEST = 240


def waits(
    pod: Any,
    warnings: Mapping[str, str],
    nodes: Mapping[str, Mapping[str, Any]],
    named: str = "engine.image in the profile",
) -> str:
    """Empty for a pod that has nothing to wait for. `warnings`: the last one of each object, by its name;
    `named`: where its image is."""
    place = str(pod.spec.node_name or (pod.spec.node_selector or {}).get(HOSTNAME) or "any node")
    known = nodes.get(place)
    if nodes and known is None:
        return f"its node {place} is not in the cluster; kubernetes_node in hosts.yml, playbooks/cluster.yml"
    if known and not known["ready"]:
        return f"its node {place} is not Ready: is it switched on? kubectl describe node {place}"
    engine = (pod.status.container_statuses or [None])[0]
    if engine and not engine.state.waiting:
        return ""
    told = warnings.get(str(pod.metadata.name), "")
    if engine and engine.state.waiting.reason in PULL:
        words = _short(engine.state.waiting.message or told or engine.state.waiting.reason)
        image = pod.spec.containers[0].image
        return f"its image {image} does not come to {place}: {words}; {named}"
    return explained(told, place) or _unplaced(pod, place)


def explained(told: str, place: str) -> str:
    """One event's message; empty for none."""
    if found := ATTACHMENT.search(told):
        return f"the attachment {found[1]} is not in the cluster; playbooks/network.yml makes it"
    if found := FILES.search(told):
        return f"the {KINDS[found[1].lower()]} {found[2]} is not in the cluster; playbooks/serve.yml makes it"
    if found := LINK.search(told):
        return f"a rail's function is not on {place}: {_short(found[0])}; playbooks/fabric.yml puts it there"
    return _short(told)


def _unplaced(pod: Any, place: str) -> str:
    for condition in pod.status.conditions or []:
        if condition.type == "PodScheduled" and condition.status == "False":
            return f"no room for it on {place}: {_short(condition.message or condition.reason)}"
    return ""


def _short(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= LONGEST else f"{flat[: LONGEST // 3]} ... {flat[-LONGEST // 2 :]}"
