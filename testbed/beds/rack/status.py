"""What the rack is right now."""

from __future__ import annotations

from typing import Any

from testbed.base import docker, names
from testbed.base.shell import RackError
from testbed.beds.rack import cluster, fabric, faults
from testbed.make import nodeimage, rootfs


def status() -> dict[str, Any]:
    """The answer of `status --json`; `up` is true only when four nodes are Ready and all rail ends are plugged."""
    answers = docker.answers()
    states = docker.containers() if answers else {}
    known = _known_nodes() if states else {}
    nodes = {}
    for index, (name, container) in enumerate(names.NODES.items(), 1):
        running = states.get(container) == "running"
        row: dict[str, Any] = {"container": container, "state": states.get(container, "absent")}
        row |= known.get(container, {"ip": "", "cidr": "", "ready": "Unknown", "gpu": "0"})
        missing = {d.netdev for d in names.devices()} - fabric.present(container) if running else set()
        row |= {"missing_links": sorted(missing), "faults": _rails(container) if running else {}}
        row["macs"] = {device.netdev: names.mac(index, i) for i, device in enumerate(names.devices())}
        nodes[name] = row
    healthy = [n["ready"] == "True" and n["state"] == "running" and not n["missing_links"] for n in nodes.values()]
    return {
        "up": all(healthy),
        "docker": answers,
        "kubeconfig": str(names.KUBECONFIG) if names.KUBECONFIG.exists() else None,
        "kubectl": str(cluster.BIN / "kubectl"),
        "node_image": nodeimage.tag(),
        "node_image_current": cluster.is_current() if states else None,
        "base_rootfs": str(rootfs.base()),
        "cache": str(names.CACHE),
        "nodes": nodes,
    }


def _known_nodes() -> dict[str, dict[str, str]]:
    try:
        return cluster.nodes()
    except RackError:
        return {}


def _rails(container: str) -> dict[str, list[str]]:
    return {fault: sorted(rails) for fault, rails in faults.held(container).items()}
