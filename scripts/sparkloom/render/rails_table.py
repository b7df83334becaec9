"""Who may reach a rail, as nftables' own text: one table for a node, one for the pods that it gives a rail to.

On a rail's interface planned addresses of that rail are heard, and nobody else; in a pod not even they at the ports
that the cluster's network is meant for, which engines open on every interface. By any other interface nothing reaches
an address of a rail, and nothing is forwarded to or from one: a pod of the cluster's network or the LAN would come so.
Nothing else is matched, so that no mistake here can cut off who manages the node. RDMA passes no table of the kernel's:
who has the rails' wire can still speak to what an engine has opened there (docs/threat-model.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from ipaddress import IPv4Address, IPv4Network

from sparkloom.inputs.cluster import Cluster, Rail, Segment
from sparkloom.launch import engines, fabric, ports
from sparkloom.launch.fabric import Plan
from sparkloom.onnode.rails_table import TABLE

# What an earlier run loaded has to go: a table without a rule lets everybody in.
OPEN = f"table inet {TABLE}\ndelete table inet {TABLE}\ntable inet {TABLE} {{\n}}\n"
HEADER = "# Written by sparkloom from the inventory's fabric.yml; changed there, not here.\n"
# Before the filters of others: whatever they accept has passed ours. What is dropped here is gone for all.
TEXT = """\
table inet {table}
delete table inet {table}
table inet {table} {{
	set peers {{
		type ifname . ipv4_addr
		elements = {{
{peers}
		}}
	}}

	chain arriving {{
		type filter hook input priority filter - 10; policy accept;
		iifname "lo" accept
{closed}		iifname . ip saddr @peers accept
		iifname {{ {guarded} }} drop
		ip daddr {{ {subnets} }} drop
	}}

	chain passing {{
		type filter hook forward priority filter - 10; policy accept;
		iifname {{ {guarded} }} drop
		oifname {{ {guarded} }} drop
		ip saddr {{ {subnets} }} drop
		ip daddr {{ {subnets} }} drop
	}}
}}
"""


def host(cluster: Cluster, plan: Plan, node: str) -> str:
    """The port's own interface is a way by which peers may come, and otherwise not ours: a VLAN or an address of
    somebody else's may be on it."""
    mine = plan.of(node)
    ways = {e.interface: e.rail for e in mine} | {e.pf: e.rail for e in mine}
    return _table(cluster, plan, ways, [e.interface for e in mine], closed=())


def pod(cluster: Cluster, plan: Plan, node: str) -> str:
    mine = plan.of(node, plan.serving_vf)
    ways = {fabric.pod_interface(number): e.rail for number, e in enumerate(mine)}
    return _table(cluster, plan, ways, ways, closed=closed())


def closed() -> tuple[int, ...]:
    """Ports of a pod that no rail leads to: an engine's API where it is unless a profile moves it, and our probes'."""
    return tuple(sorted({ports.PROBES, *(engines.get(name).port for name in engines.names())}))


def _table(
    cluster: Cluster, plan: Plan, ways: Mapping[str, str], guarded: Iterable[str], *, closed: Sequence[int]
) -> str:
    if not cluster.fabric.private:
        return HEADER + OPEN
    rails = {rail.name: rail for rail in cluster.fabric.segments}
    heard = {name: [*_planned(plan, rail), *_guests(cluster, rail)] for name, rail in rails.items()}
    peers = [(way, address) for way, rail in sorted(ways.items()) for address in heard[rail]]
    names = ", ".join(f'"{name}"' for name in sorted(set(guarded)))
    shut = f"\t\tiifname {{ {names} }} tcp dport {{ {', '.join(map(str, closed))} }} drop\n" if closed else ""
    return HEADER + TEXT.format(
        table=TABLE,
        closed=shut,
        peers=",\n".join(f'\t\t\t"{way}" . {address}' for way, address in peers),
        guarded=names,
        subnets=", ".join(rail.subnet for rail in cluster.fabric.rails),
    )


def _guests(cluster: Cluster, rail: Rail) -> list[str]:
    return [guest for guest in cluster.fabric.guests if IPv4Address(guest) in IPv4Network(rail.subnet)]


def _planned(plan: Plan, rail: Rail) -> list[str]:
    """Every planned address of the rail; of a ring's cable every one of both its ends, which meet at one each."""
    ring = isinstance(rail, Segment)
    return [e.address for e in plan.endpoints if (rail.joins(e.node) if ring else e.rail == rail.name)]
