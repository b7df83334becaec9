"""Address arithmetic of the rails, and everything in an inventory that would make two things the same.

Each VF index has a block of addresses of its own, as wide as the cluster may grow: 16 nodes, then 64.
A node's place in a block is its fabric_index, so that adding a node moves nobody.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from ipaddress import IPv4Address, IPv4Network
from typing import Any

from sparkloom.base.document import Fault, Loc
from sparkloom.base.errors import did_you_mean
from sparkloom.inputs import ring
from sparkloom.inputs.cluster import QUARTER, Cluster, Fabric, Port, Rail

K3S_NETWORKS = {"pod_cidr": "10.42.0.0/16", "service_cidr": "10.43.0.0/16"}  # what K3s takes when told nothing
LONGEST_INTERFACE = 15  # IFNAMSIZ less the closing zero
_PREDICTED = re.compile(r"en(?:P(\d+))?p(\d+)s(\d+)(?:f(\d+))?(?:np\d+)?")


def block(largest_index: int) -> int:
    """Addresses that each VF index takes."""
    return 16 if largest_index <= 16 else 64


def vfs_in_use(fabric: Fabric) -> tuple[int, ...]:
    return tuple(sorted({fabric.serving_vf} | ({fabric.check_vf} if fabric.check_vf is not None else set())))


def address(fabric: Fabric, network: IPv4Network, index: int, vf: int, width: int) -> int:
    return int(network.network_address) + fabric.first_host + index - 1 + width * vf


def functions_of_pods(cluster: Cluster) -> tuple[int, ...]:
    """Functions of the rails that serving pods may get, the inventory's `serving_vf` first; none without rails.

    A whole port is one thing: where a half has no functions, one group of several Sparks can be on each of them.
    """
    rails = cluster.fabric
    if not rails.rails:
        return ()
    if any(rails.whole(rail) for rail in rails.rails):
        return (rails.serving_vf,)
    others = [vf for vf in range(rails.vfs_per_rail) if vf not in (rails.serving_vf, rails.check_vf)]
    return (rails.serving_vf, *(vf for vf in others if _has_room(cluster, vf)))


def _has_room(cluster: Cluster, vf: int) -> bool:
    """Whether every rail's subnet has an address for that function of every Spark."""
    highest = max(node.fabric_index for node in cluster.nodes)
    width = block(highest)
    networks = [IPv4Network(cluster.fabric.split(rail)[0].subnet) for rail in cluster.fabric.rails]
    return all(
        address(cluster.fabric, network, highest, vf, width) < int(network.broadcast_address) for network in networks
    )


def functions_in_use(cluster: Cluster, rail: Rail) -> tuple[int, ...]:
    """What each Spark has an address for on that rail. A whole port has one place, that of the serving function.

    A site with one profile has two in use. A site with a list has every one that a group may get, whether one has it
    yet or not: a group that comes later changes nothing on a rail that carries an engine.
    """
    if cluster.fabric.whole(rail):
        return (cluster.fabric.serving_vf,)
    more = functions_of_pods(cluster) if cluster.several else ()
    return tuple(sorted({*vfs_in_use(cluster.fabric), *more}))


def predicted(pf: str) -> tuple[int, ...] | None:
    """PCI domain, bus, slot and function out of systemd's name of an interface, where it has that form."""
    match = _PREDICTED.fullmatch(pf)
    return tuple(int(part or 0) for part in match.groups()) if match else None


def faults(cluster: Cluster) -> list[Fault]:
    """All that is wrong; nothing is planned until this is empty."""
    basic = [*_nodes(cluster), *_functions(cluster.fabric), *_rails(cluster), *ring.faults(cluster)]
    return basic or [*_networks(cluster), *_guests(cluster.fabric), *_room(cluster)]


def _nodes(cluster: Cluster) -> Iterator[Fault]:
    for key in ("name", "kubernetes_node", "management_address", "fabric_index"):
        advice = "fabric_index fixes a node's addresses" if key == "fabric_index" else "each node needs its own"
        for number, node, other in _twice(cluster.nodes, key):
            message = f"{node.name} and {other.name} both have {getattr(node, key)}; {advice}"
            yield Fault(("nodes", number, key), message)


def _twice(items: Sequence[Any], key: str) -> Iterator[tuple[int, Any, Any]]:
    """(number, item, the first with the same value) of every item whose value stood there before."""
    values = [getattr(item, key) for item in items]
    for number, value in enumerate(values):
        if value is not None and value in values[:number]:
            yield number, items[number], items[values.index(value)]


def _functions(fabric: Fabric) -> Iterator[Fault]:
    last = fabric.vfs_per_rail - 1
    for key in ("serving_vf", "check_vf"):
        vf = getattr(fabric, key)
        if vf is not None and vf > last:
            there = "only VF 0" if last == 0 else f"VFs 0 to {last}"
            yield Fault(
                ("fabric", key),
                f"{vf} is out of range: vfs_per_rail = {fabric.vfs_per_rail} makes {there}; raise that or lower {key}",
            )
    if fabric.check_vf == fabric.serving_vf:
        message = f"VF {fabric.check_vf} goes into the serving pods, the host cannot keep it; name another or none"
        yield Fault(("fabric", "check_vf"), message)


def _rails(cluster: Cluster) -> Iterator[Fault]:
    rails = cluster.fabric.rails
    for key in ("name", "pf", "pci"):
        for number, rail, other in _twice(rails, key):
            yield Fault(
                ("fabric", "rails", number, key),
                f"{getattr(rail, key)} is rail '{other.name}' too; "
                f"a rail is one half of a port, each with its own {key}",
            )
    for number, rail in enumerate(rails):
        yield from _interface(cluster, ("fabric", "rails", number), rail)
        for node, port in rail.ports.items():
            loc = ("fabric", "rails", number, "ports", node)
            if node not in (names := [each.name for each in cluster.nodes]):
                yield Fault(loc, f"'{node}' is no Spark of this inventory{did_you_mean(node, names)}")
            yield from _interface(cluster, loc, port)
    yield from _halves(cluster)


def _halves(cluster: Cluster) -> Iterator[Fault]:
    """On every node two rails are two halves: different ports, and of different PCI domains."""
    if len(cluster.fabric.rails) < 2:
        return
    first, second = cluster.fabric.rails
    for node in ("", *{**first.ports, **second.ports}):
        one, other = first.at(node), second.at(node)
        loc: Loc = ("fabric", "rails", 1, *(("ports", node) if node in second.ports else ()), "pci")
        if node and one.pci == other.pci:
            yield Fault(loc, f"{other.pci} is rail '{first.name}' too on {node}; a rail is one half of a port")
        elif cluster.expect_gb10 and one.pci != other.pci and one.pci[:4] == other.pci[:4]:
            yield Fault(
                loc,
                f"{other.pci} is in PCI domain {other.pci[:4]} like rail '{first.name}': both share one x4 link, "
                f"so a second rail adds nothing; take the port's other half (0002:{one.pci[5:]}) or declare one rail",
            )


def _interface(cluster: Cluster, loc: Loc, port: Port) -> Iterator[Fault]:
    pf, pci = port.pf, port.pci
    if pf == cluster.management_interface:
        yield Fault((*loc, "pf"), f"{pf} is the management interface too; name the CX-7 port's interface")
    longest = f"{re.sub(r'np[0-9]+$', '', pf)}v{cluster.fabric.vfs_per_rail - 1}"
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", pf) or max(len(pf), len(longest)) > LONGEST_INTERFACE:
        yield Fault(
            (*loc, "pf"),
            f"'{pf}' is no interface name that VFs can be named after (letters and digits, {LONGEST_INTERFACE} at most "
            f"with the VF's suffix); `ip -br link` on a node lists them",
        )
    named, real = predicted(pf), tuple(int(part, 16) for part in re.split("[:.]", pci))
    if named and named != real:
        yield Fault(
            (*loc, "pci"),
            f"{pci} is not where {pf} sits: that name means {named[0]:04x}:{named[1]:02x}:{named[2]:02x}.{named[3]}; "
            f"`ethtool -i {pf}` on a node prints its bus-info",
        )


def _networks(cluster: Cluster) -> Iterator[Fault]:
    """Overlaps: rails with each other, with the cluster's own networks, with management addresses."""
    rails = [(rail, IPv4Network(rail.subnet)) for rail in cluster.fabric.rails]
    for number, (rail, network) in enumerate(rails):
        loc: Loc = ("fabric", "rails", number, "subnet")
        for other, others_network in rails[:number]:
            if network.overlaps(others_network):
                message = (
                    f"{network} overlaps {others_network} of rail '{other.name}'; each rail needs a subnet of its own"
                )
                yield Fault(loc, message)
        if network.is_multicast or network.is_loopback or network.is_link_local or network.is_unspecified:
            yield Fault(loc, f"{network} is reserved (multicast, loopback or link-local); take a private one")
        for key, theirs in kubernetes_networks(cluster).items():
            if network.overlaps(theirs):
                message = (
                    f"{network} overlaps the cluster's {key} {theirs}; choose another subnet for rail '{rail.name}'"
                )
                yield Fault(loc, message)
        for place, node in enumerate(cluster.nodes):
            if _inside(node.management_address, network):
                yield Fault(
                    ("nodes", place, "management_address"),
                    f"{node.management_address} lies in {network} of rail '{rail.name}', so traffic would take the "
                    f"wrong port; change fabric.rails.{number}.subnet",
                )


def _guests(fabric: Fabric) -> Iterator[Fault]:
    subnets = [rail.subnet for rail in fabric.rails]
    for number, guest in enumerate(fabric.guests):
        if not any(IPv4Address(guest) in IPv4Network(subnet) for subnet in subnets):
            there = f"they are {', '.join(subnets)}" if subnets else "there is none"
            yield Fault(("fabric", "guests", number), f"{guest} is in no rail's subnet ({there}), so it needs no leave")


def _inside(text: str | None, network: IPv4Network) -> bool:
    try:
        return IPv4Address(text or "") in network
    except ValueError:  # a host name, an IPv6 address
        return False


def kubernetes_networks(cluster: Cluster) -> dict[str, IPv4Network]:
    """Pod and Service networks, where they are given or K3s' own defaults."""
    defaults: dict[str, str] = K3S_NETWORKS if cluster.kubernetes.provider == "k3s" else {}
    given = {key: getattr(cluster.kubernetes, key) or defaults.get(key) for key in K3S_NETWORKS}
    return {key: IPv4Network(text) for key, text in given.items() if text}


def _room(cluster: Cluster) -> Iterator[Fault]:
    fabric = cluster.fabric
    width = block(max(node.fabric_index for node in cluster.nodes))
    highest = max(cluster.nodes, key=lambda node: node.fabric_index)
    vf = max(vfs_in_use(fabric))
    for number, rail in enumerate(fabric.rails):
        network = IPv4Network(fabric.split(rail)[0].subnet)
        last = address(fabric, network, highest.fabric_index, vf, width)
        if last >= int(network.broadcast_address):
            needed = last - int(network.network_address) + 2
            prefix = 32 - (needed - 1).bit_length() - (QUARTER if fabric.ring else 0)
            part = f"a cable's quarter of {rail.subnet}, " if fabric.ring else ""
            yield Fault(
                ("fabric", "rails", number, "subnet"),
                f"{part}{network} has no room for VF {vf} of {highest.name} (fabric_index {highest.fabric_index}, "
                f"first_host {fabric.first_host}): host number {last - int(network.network_address)} of "
                f"{network.num_addresses - 2}; take a /{prefix} or lower first_host",
            )
