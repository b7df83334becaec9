"""What each node should have for its rails: file contents and settings as data, rendered on the controller."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import yaml

from sparkloom.inputs.cluster import Cluster
from sparkloom.launch import fabric
from sparkloom.launch.fabric import Endpoint, Plan
from sparkloom.launch.groups import Running
from sparkloom.onnode import interfaces
from sparkloom.render import rails_table
from sparkloom.site import images
from sparkloom.site.checks import rails

# A rail's port and functions share its wire: each answers for its own address only, and replies may come in by another.
# The port has no address and would otherwise answer for those of its functions, with its own MAC.
OWN_ADDRESS_ONLY = {**{name: int(value) for name, value in interfaces.OWN_ADDRESS_ONLY.items()}, "rp_filter": 2}


def every(cluster: Cluster, plan: Plan, groups: Iterable[Running] = ()) -> dict[str, dict[str, Any]]:
    """`groups`: those that run or are about to, where a site has several; pods of others do not hear them."""
    known = list(groups)
    pings = rails.pings(cluster, plan)
    return {
        node.name: {
            **_node(cluster, plan, node.name, known),
            "pings": pings[node.name],
            "unanswered": rails.unanswered(cluster, plan, node.name),
        }
        for node in cluster.nodes
    }


def _node(cluster: Cluster, plan: Plan, node: str, groups: list[Running]) -> dict[str, Any]:
    mine = [endpoint for endpoint in plan.endpoints if endpoint.node == node]
    ports = [rail.at(node).pf for rail in cluster.fabric.rails_of(node) if not cluster.fabric.whole(rail)]
    parents = [{"interface": pf, "mtu": cluster.fabric.mtu} for pf in ports]
    return {
        "netplan": fabric.HEADER + yaml.safe_dump(fabric.netplan(plan, node), sort_keys=False),
        "links": [*parents, *({"interface": e.interface, "mtu": e.mtu, "cidr": e.cidr} for e in mine)],
        "subnets": [rail.subnet for rail in cluster.fabric.rails],
        "functions": [
            {"interface": e.interface, "mac": e.mac, "address": e.address, "pci": e.pci if e.whole else ""}
            for e in mine
        ],
        "functions_file": _functions_file(cluster, node, mine),
        "private": {
            "host": rails_table.host(cluster, plan, node),
            "pod": rails_table.pod(cluster, plan, node, groups),
        },
        "sysctl": _sysctl(mine),
    }


def _functions_file(cluster: Cluster, node: str, mine: list[Endpoint]) -> str:
    described: list[Mapping[str, Any]] = []
    queue = {"priority": fabric.LOSSLESS_PRIORITY, "dscp": fabric.LOSSLESS_DSCP} if cluster.fabric.lossless else None
    for rail in cluster.fabric.rails_of(node):
        port, whole = rail.at(node), cluster.fabric.whole(rail)
        made = [] if whole else [{"vf": e.vf, "interface": e.interface, "mac": e.mac} for e in mine if e.pf == port.pf]
        described.append(
            {
                "pf": port.pf,
                "pci": port.pci,
                "lossless": queue,
                "count": 0 if whole else cluster.fabric.vfs_per_rail,
                "subnets": [rail.subnet for rail in cluster.fabric.rails],
                "functions": made,
                **({"whole": True} if whole else {}),
            }
        )
    # by `hotplug` the card stays on the bus, by `runtimes` pods are found whose function went with it
    of_card = {"hotplug": cluster.fabric.hotplug, "runtimes": images.PLACES}
    return json.dumps({"rails": described, **of_card}, indent=2) + "\n"


def _sysctl(mine: list[Endpoint]) -> dict[str, int]:
    interfaces = dict.fromkeys([*(e.pf for e in mine), *(e.interface for e in mine)])
    return {f"net.ipv4.conf.{name}.{key}": value for name in interfaces for key, value in OWN_ADDRESS_ONLY.items()}
