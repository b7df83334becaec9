"""In place of K3s' ServiceLB: whoever asks a node at a port of a Service of type LoadBalancer is led to its pods.

K3s runs a pod per node for it, whose port on the node it is. Here the nodes' addresses alone are written into the
Service, and kube-proxy leads there, as it does for any load balancer's address. As with K3s a Service stays without an
address while an older one has one of its ports. Runs on the first node beside its API server, by Python's standard
library and kubectl alone.
"""

from __future__ import annotations

import json
import subprocess
from typing import Any

KUBECTL = ("kubectl", "--kubeconfig=/etc/kubernetes/admin.conf")


def kubectl(*words: str) -> str:
    return subprocess.run([*KUBECTL, *words], check=True, capture_output=True, text=True).stdout


def addresses(nodes: list[dict[str, Any]]) -> list[str]:
    listed = (entry for node in nodes for entry in node["status"]["addresses"])
    return sorted(entry["address"] for entry in listed if entry["type"] == "InternalIP")


def wanted(services: list[dict[str, Any]], reached: list[str]) -> dict[tuple[str, str], list[str]]:
    """The addresses of each Service that asks for some, the oldest first."""
    found, taken = dict[tuple[str, str], list[str]](), set[int]()
    for service in sorted(services, key=lambda one: str(one["metadata"]["creationTimestamp"])):
        if service["spec"].get("type") != "LoadBalancer":
            continue
        ports = {entry["port"] for entry in service["spec"]["ports"]}
        found[service["metadata"]["namespace"], service["metadata"]["name"]] = [] if ports & taken else reached
        taken |= ports
    return found


def look() -> None:
    """Once over all Services."""
    items = json.loads(kubectl("get", "nodes,services", "--all-namespaces", "-o", "json"))["items"]
    services = [item for item in items if item["kind"] == "Service"]
    told = wanted(services, addresses([item for item in items if item["kind"] == "Node"]))
    for service in services:
        space, name = service["metadata"]["namespace"], service["metadata"]["name"]
        there = [entry.get("ip") for entry in service["status"].get("loadBalancer", {}).get("ingress", [])]
        if (space, name) in told and there != told[space, name]:
            status = {"loadBalancer": {"ingress": [{"ip": address} for address in told[space, name]]}}
            more = ("--subresource=status", "--type=merge", "-p", json.dumps({"status": status}))
            kubectl("patch", "service", name, "-n", space, *more)


def main() -> None:
    """Each change of a Service is a line, and so is each one that is there at the beginning."""
    watch = [*KUBECTL, "get", "services", "--all-namespaces", "--watch", "-o", "name"]
    with subprocess.Popen(watch, stdout=subprocess.PIPE, text=True) as changes:
        assert changes.stdout
        for _ in changes.stdout:
            look()


if __name__ == "__main__":
    main()
