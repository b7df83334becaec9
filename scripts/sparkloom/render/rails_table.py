"""Who may reach a rail, as nftables' own text: one table for a node, one for the pods that it gives a rail to.

On a rail's interface planned addresses of that rail are heard, and nobody else; in a pod not even they at the ports
that the cluster's network is meant for, which engines open on every interface. By any other interface nothing reaches
an address of a rail, and nothing is forwarded to or from one: a pod of the cluster's network or the LAN would come so.
Nothing else is matched, so that no mistake here can cut off who manages the node. RDMA passes no table of the kernel's:
who has the rails' wire can still speak to what an engine has opened there (docs/threat-model.md).

Where a site serves several groups a pod hears its own group and the hosts. One table serves all pods of a node: what it
lets in is told by the address that is spoken to, which is that of one function, which one group has on that node.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from string import Template

from sparkloom.inputs.cluster import Cluster, Rail, Segment
from sparkloom.launch import engines, fabric, ports
from sparkloom.launch.fabric import Endpoint, Plan
from sparkloom.launch.groups import Running
from sparkloom.onnode.rails_table import TABLE

# What an earlier run loaded has to go: a table without a rule lets everybody in.
OPEN = f"table inet {TABLE}\ndelete table inet {TABLE}\ntable inet {TABLE} {{\n}}\n"
# Before the filters of others: whatever they accept has passed ours. What is dropped here is gone for all.
TABLE_TEXT = Path(__file__).with_name("rails.nft")
# What an element of the set is, and the packet's part that must be one of them.
PLANNED = ("ifname . ipv4_addr", "iifname . ip saddr")
OF_A_GROUP = ("ifname . ipv4_addr . ipv4_addr", "iifname . ip saddr . ip daddr")


def host(cluster: Cluster, plan: Plan, node: str) -> str:
    """The port's own interface is a way by which peers may come, and otherwise not ours: a VLAN or an address of
    somebody else's may be on it."""
    mine = plan.of(node)
    ways = {(e.interface, e.rail) for e in mine} | {(e.pf, e.rail) for e in mine}
    return _table(cluster, _planned(cluster, plan, ways), [e.interface for e in mine], PLANNED)


def pod(cluster: Cluster, plan: Plan, node: str, groups: Iterable[Running] = ()) -> str:
    """`groups`: those that run or are about to. Where none is known, any Sparks may be one, of the same function."""
    if cluster.several:
        heard = list(dict.fromkeys(_of_groups(cluster, plan, node, list(groups))))
        names = {way for sparks in _together(cluster, node) for way, _ in _ways(cluster, node, sparks)}
        return _table(cluster, heard, names, OF_A_GROUP, closed=closed())
    ways = {(way, rail.name) for sparks in _together(cluster, node) for way, rail in _ways(cluster, node, sparks)}
    return _table(cluster, _planned(cluster, plan, ways), {way for way, _ in ways}, PLANNED, closed=closed())


def closed() -> tuple[int, ...]:
    """Ports of a pod that no rail leads to: an engine's API where it is unless a profile moves it, and our probes'."""
    return tuple(sorted({ports.PROBES, *(engines.get(name).port for name in engines.names())}))


def _table(
    cluster: Cluster,
    heard: Sequence[tuple[str, ...]],
    guarded: Iterable[str],
    form: tuple[str, str],
    *,
    closed: Sequence[int] = (),
) -> str:
    """`heard`: interface, who speaks, and where that is asked, who is spoken to."""
    if not cluster.fabric.private:
        return fabric.HEADER + OPEN
    names = ", ".join(f'"{name}"' for name in sorted(set(guarded)))
    shut = f"\t\tiifname {{ {names} }} tcp dport {{ {', '.join(map(str, closed))} }} drop\n" if closed else ""
    kind, peer = form
    return fabric.HEADER + Template(TABLE_TEXT.read_text(encoding="utf-8")).substitute(
        table=TABLE,
        kind=kind,
        peer=peer,
        closed=shut,
        peers=",\n".join(f'\t\t\t"{way}" . {" . ".join(addresses)}' for way, *addresses in heard),
        guarded=names,
        subnets=", ".join(rail.subnet for rail in cluster.fabric.rails),
    )


def _planned(cluster: Cluster, plan: Plan, ways: Iterable[tuple[str, str]]) -> list[tuple[str, ...]]:
    """Every planned address of the rail that a way leads to, and the guests there."""
    rails = {rail.name: rail for rail in cluster.fabric.segments}
    heard = [
        (way, address)
        for way, name in sorted(ways)
        for address in [*_addresses(plan.endpoints, rails[name]), *_guests(cluster, rails[name])]
    ]
    return list(dict.fromkeys(heard))


def _of_groups(cluster: Cluster, plan: Plan, node: str, groups: Sequence[Running]) -> Iterator[tuple[str, ...]]:
    """For each function that a pod may have here: its group's addresses of the same one, the hosts', the guests'."""
    hosts = [e for e in plan.endpoints if e.vf == plan.check_vf]
    for vf in plan.of_pods():
        own = plan.of(node, vf)
        known = [one.nodes for one in groups if one.vf == vf and node in one.nodes]
        for sparks in known or _together(cluster, node):
            group = [e for e in plan.endpoints if e.vf == vf and e.node in sparks]
            for way, rail in _ways(cluster, node, sparks):
                speak = [*_addresses([*group, *hosts], rail), *_guests(cluster, rail)]
                # a ring's ranks meet at one address each, by whichever cable joins them
                spoken_to = [e.address for e in own if isinstance(rail, Segment) or e.rail == rail.name]
                yield from ((way, theirs, ours) for ours in spoken_to for theirs in speak)


def _together(cluster: Cluster, node: str) -> list[tuple[str, ...]]:
    """Sparks that could be one group with this one, as far as that changes which rail is which in its pod."""
    every = tuple(each.name for each in cluster.nodes)
    return [every, *((node, other) for other in every if cluster.fabric.ring and other != node)]


def _ways(cluster: Cluster, node: str, sparks: Sequence[str]) -> list[tuple[str, Rail]]:
    """The interfaces of a pod whose group has these Sparks: it gets the rails that join at least two of them."""
    between = [rail for rail in cluster.fabric.rails_of(node) if sum(rail.joins(name) for name in sparks) > 1]
    return [(fabric.pod_interface(number), rail) for number, rail in enumerate(between)]


def _guests(cluster: Cluster, rail: Rail) -> list[str]:
    return [guest for guest in cluster.fabric.guests if IPv4Address(guest) in IPv4Network(rail.subnet)]


def _addresses(ends: Iterable[Endpoint], rail: Rail) -> list[str]:
    """Those of the rail; of a ring's cable every one of both its ends, which meet at one each."""
    ring = isinstance(rail, Segment)
    return [e.address for e in ends if (rail.joins(e.node) if ring else e.rail == rail.name)]
