"""Which addresses the rack's stand-in of K3s' ServiceLB gives to whom."""

from __future__ import annotations

from typing import Any

from testbed.standins import servicelb

NODES = ["172.19.0.2", "172.19.0.3"]


def service(name: str, made: str, *ports: int, kind: str = "LoadBalancer") -> dict[str, Any]:
    metadata = {"name": name, "namespace": "n", "creationTimestamp": made}
    return {"metadata": metadata, "spec": {"type": kind, "ports": [{"port": port} for port in ports]}, "status": {}}


def test_every_node_leads_to_the_oldest_that_wants_a_port() -> None:
    """K3s' pod of a later one finds the port taken, and waits."""
    asked = [
        service("later", "2026-11-26T02:00:00Z", 443, 80),
        service("first", "2026-11-26T01:00:00Z", 443),
        service("other", "2026-11-26T03:00:00Z", 8443),
        service("inside", "2026-11-26T00:00:00Z", 443, kind="ClusterIP"),
    ]
    assert servicelb.wanted(asked, NODES) == {("n", "first"): NODES, ("n", "later"): [], ("n", "other"): NODES}


def test_a_node_is_reached_at_its_own_address() -> None:
    told = [{"type": "Hostname", "address": "b"}, {"type": "InternalIP", "address": "172.19.0.3"}]
    first = [{"type": "InternalIP", "address": "172.19.0.2"}]
    assert servicelb.addresses([{"status": {"addresses": one}} for one in (told, first)]) == NODES
