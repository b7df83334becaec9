"""Are the two halves of the cable's port there, under the names that the site wrote down, with a whole link?

Ports are found by their PCI address and vendor. Each QSFP port of a Spark shows up twice, once per PCI domain
(0000 and 0002) at the same bus and function: the twins. A site whose names differ is told the true ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sparkloom.base.finding import Finding
from sparkloom.inputs.cluster import SPEEDS, Cluster, Rail, Segment

Port = Mapping[str, Any]
MELLANOX, CONNECTX7 = "0x15b3", "0x1021"
# What starts a card anew that a reboot does not: owners on NVIDIA's forum (363461, 383649), in this order.
DRAIN = "leave the cables in, switch off, take the power cable out of the wall for a minute, then start"


def cards(probe: Mapping[str, Any]) -> list[Port]:
    """The ConnectX-7 functions; all ports where there is none (a machine that is not a Spark)."""
    ours = [port for port in probe["ports"] if port["vendor"] == MELLANOX and port["device"] == CONNECTX7]
    return ours or list(probe["ports"])


def twins(ports: list[Port]) -> list[tuple[Port, ...]]:
    """Ports by bus and function: one QSFP cage each, its halves in the order of their domains."""
    cages: dict[str, list[Port]] = {}
    for port in sorted(ports, key=lambda port: str(port["pci"])):
        cages.setdefault(port["pci"].partition(":")[2], []).append(port)
    return [tuple(halves) for halves in cages.values()]


def judge(node: str, cluster: Cluster, probe: Mapping[str, Any]) -> Iterator[Finding]:
    ports = cards(probe)
    for rail in cluster.fabric.rails_of(node):
        if cluster.expect_gb10 and (gone := absent(node, f"rail {rail.half}", probe)):
            yield gone
            continue
        port, trouble = _find(node, rail, ports)
        if trouble:
            yield trouble
        elif port:
            yield from _link(node, cluster, rail, port, ports)
            yield from _functions(node, cluster, rail, port)
    yield from _both(node, cluster, ports)


def absent(node: str, check: str, probe: Mapping[str, Any]) -> Finding | None:
    """No ConnectX-7 on the bus: hot-plug took it for want of a cable, or it is dead."""
    if any(port["device"] == CONNECTX7 for port in probe["ports"]):
        return None
    told = probe.get("hotplug") or {}
    what, fix = "no ConnectX-7 on the PCI bus", f"{DRAIN}; a card that stays away is its maker's matter"
    if told.get("enabled") and not told["cable"]:
        what += ": hot-plug took it, no cable seen"
        fix = "the cable at both ends, and power at the other end: the card comes back by itself (docs/fabric.md)"
    elif told.get("enabled"):
        what += ", though hot-plug sees a cable"
        fix = f"sudo tee /sys/bus/pci/rescan <<< 1 on the node; else {DRAIN}"
    return Finding(node, check, what, "both ports of both halves", fix)


def _both(node: str, cluster: Cluster, ports: list[Port]) -> Iterator[Finding]:
    """In a ring without a switch all links are up, and yet no rail joins all Sparks."""
    cages = twins([port for port in ports if port["device"] == CONNECTX7])
    if (
        cluster.fabric.ring
        or len(cluster.nodes) < 3
        or len([halves for halves in cages if any(half["carrier"] for half in halves)]) < 2
    ):
        return
    for rail in cluster.fabric.rails[:1]:
        change = (
            "sparkloom fabric discover says what is behind each cable, and writes fabric.ring for three in a ring "
            "without a switch (docs/rings.md); a second cable to the same switch adds nothing"
        )
        yield _finding(node, rail, "a link in both cages", "one, to the switch that all share", change, warn=True)


def _finding(node: str, rail: Rail, message: str, expected: str, fix: str, *, warn: bool = False) -> Finding:
    return Finding(node, f"rail {rail.half}", message, expected, fix, "warning" if warn else "error")


def _find(node: str, rail: Rail, ports: list[Port]) -> tuple[Port | None, Finding | None]:
    """The port of a rail, or what is wrong with its name or place."""
    place, wanted = _where(node, rail), rail.at(node)
    where = f"{place} in fabric.yml"
    at = next((port for port in ports if port["pci"] == wanted.pci), None)
    named = next((port for port in ports if port["interface"] == wanted.pf), None)
    if at is not None and at is named:
        return at, None
    if at is not None and not at["interface"]:
        cure = f"dmesg for mlx5_core says why; sudo tee /sys/bus/pci/drivers/mlx5_core/bind <<< {wanted.pci} starts it"
        return None, _finding(node, rail, f"{wanted.pci} has no network interface", wanted.pf, cure)
    if at is not None:
        cure = f"pf: {at['interface']} in {where}"
        return None, _finding(node, rail, f"{wanted.pci} is {at['interface']} here, not {wanted.pf}", wanted.pf, cure)
    if named is not None:
        cure = f'pci: "{named["pci"]}" in {where}'
        return None, _finding(node, rail, f"{wanted.pf} is at {named['pci']} here, not {wanted.pci}", wanted.pci, cure)
    seen = "; ".join(" + ".join(f"{p['interface'] or 'none'} {p['pci']}" for p in halves) for halves in twins(ports))
    message = f"no {wanted.pf} at {wanted.pci}; here are {seen or 'no ports'}"
    return None, _finding(node, rail, message, wanted.pf, f"pf, pci of {where}")


def _link(node: str, cluster: Cluster, rail: Rail, port: Port, ports: list[Port]) -> Iterator[Finding]:
    name = port["interface"]
    if port["master"]:
        cure = "take it out (ip link set dev … nomaster, and the file in /etc/netplan); a rail needs its port alone"
        yield _finding(node, rail, f"{name} is a member of {port['master']}", "a port of its own", cure)
    if not port["up"]:
        cure = "nothing now: playbooks/fabric.yml switches it on and then looks again"
        yield _finding(node, rail, f"{name} is switched off, its cable cannot be seen", "a link", cure, warn=True)
        return
    if not port["carrier"]:
        yield _finding(node, rail, f"{name} without carrier", "a link", _cable(node, rail, port, ports))
    elif port["speed"] != cluster.fabric.rail_gbit * 1000:
        yield _speed(node, cluster, rail, port)
    if cluster.expect_gb10 and not port["hca"]:
        yield _finding(node, rail, f"{name} has no RDMA device", "one", "modprobe mlx5_ib; see dmesg for mlx5")


def _speed(node: str, cluster: Cluster, rail: Rail, port: Port) -> Finding:
    """Slower than the site says is refused, faster is worth a word: its thresholds are those of a slower fabric."""
    wanted, speed = cluster.fabric.rail_gbit, port["speed"] / 1000
    faster, usual = speed > wanted, speed in SPEEDS
    declare = f"fabric.rail_gbit: {speed:g} in fabric.yml"
    cure = (
        "the cable and the switch's port speed (autonegotiation often settles for less: set the port to "
        f"{wanted}G); a ConnectX-7 that is stuck low needs powering both ends off"
    )
    if faster:
        cure = f"{declare}; otherwise playbooks/verify.yml accepts a rail that is too slow"
    elif usual:
        cure += f"; or {declare}, where the switch or a breakout cable gives no more"
    found = f"{port['interface']} at {speed:g} Gb/s"
    return _finding(node, rail, found, f"{wanted} Gb/s", cure, warn=faster or not cluster.expect_gb10)


def _where(node: str, rail: Rail) -> str:
    if isinstance(rail, Segment):
        other = ", the card's other port by fabric.ring" if node in rail.ports else ""
        return f"fabric.rails[{rail.half}]{other}"
    return f"fabric.rails[{rail.name}]{f'.ports.{node}' if node in rail.ports else ''}"


def _cable(node: str, rail: Rail, port: Port, ports: list[Port]) -> str:
    """Is the cable in the other cage? Then both of its halves have a carrier."""
    for halves in twins(ports):
        others = [half for half in halves if half["pci"] != port["pci"] and half["pci"][:4] == port["pci"][:4]]
        if others and not isinstance(rail, Segment) and len(halves) > 1 and all(half["carrier"] for half in halves):
            found = f'{{pf: {others[0]["interface"]}, pci: "{others[0]["pci"]}"}}'
            return (
                f"the cable is in the other port: move it, or ports: {{{node}: {found}}} for rail {rail.name} in "
                "fabric.yml (pf and pci of the rail itself where it is so on every node)"
            )
    return f"the cable and the switch's port, or {_where(node, rail)}.pf in fabric.yml"


def _functions(node: str, cluster: Cluster, rail: Rail, port: Port) -> Iterator[Finding]:
    wanted = 0 if cluster.fabric.whole(rail) else cluster.fabric.vfs_per_rail
    if port["total_vfs"] < wanted:
        found = f"{port['interface']} offers {port['total_vfs']} virtual functions"
        cure = (
            "SRIOV_EN and NUM_OF_VFS in its firmware (mlxconfig), fabric.vfs_per_rail in fabric.yml, or attach: pf for "
            f"rail {rail.half} where this half cannot: pods then get the whole port"
        )
        yield _finding(node, rail, found, f"{wanted}", cure)
