"""Did the fabric come up as planned? Judged from what each node reads back after it was configured."""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any

from sparkloom.base.finding import Finding
from sparkloom.inputs.cluster import Cluster
from sparkloom.launch import ports
from sparkloom.launch.fabric import Endpoint, Plan
from sparkloom.render import rails_table

Probe = Mapping[str, Any]
AGAIN = "playbooks/fabric.yml sets it; run it again and see what it says"
STRANGERS = {
    "pod": "a pod of the cluster's network",
    "lan": "a packet with the LAN's address",
    "peer": "a peer's rail",
}
SHOWN = 3  # addresses of a finding


def pings(cluster: Cluster, plan: Plan) -> dict[str, list[dict[str, Any]]]:
    """Which peers each node pings, on each rail: over the function that stays on the host."""
    ends = plan.at_host()
    wanted: dict[str, list[dict[str, Any]]] = {node.name: [] for node in cluster.nodes}
    for mine in ends:
        wanted[mine.node] += [
            {
                "interface": mine.interface,
                "address": peer.address,
                "payload": mine.mtu - 28,
                "node": peer.node,
                "mac": peer.mac,
            }
            for peer in ends
            if peer.rail == mine.rail and peer.node != mine.node
        ]
    return wanted


def unanswered(cluster: Cluster, plan: Plan, node: str) -> dict[str, Any]:
    """What must give no answer to a pod without a rail, to the LAN's address and to a peer; nothing on open rails.

    Where nobody listens the kernel refuses what it let in, so that rails are judged before anything is served.
    """
    if not cluster.fabric.private or not plan.rails:
        return {}
    ends = {(end.node, end.address): end for end in plan.endpoints}.values()
    away = [end for end in ends if end.node != node]
    of_pods = plan.of_pods()
    pods = {end.address for end in ends if end.vf in of_pods}
    asked = [
        *(("pod", end, ports.CONTROL) for end in ends),
        *(("lan", end, ports.CONTROL) for end in away),
        *(("peer", end, port) for end in away if end.address in pods for port in rails_table.closed()),
    ]
    doors = [{"by": by, "node": end.node, "address": end.address, "port": port} for by, end, port in asked]
    return {
        "doors": doors,
        "management": cluster.management_interface,
        "subnets": [rail.subnet for rail in cluster.fabric.rails],
    }


def judge(cluster: Cluster, plan: Plan, probes: Mapping[str, Probe], only: Collection[str] = ()) -> list[Finding]:
    """All nodes, or those that a run was limited to: the others may not be set up yet, and are not blamed."""
    findings: list[Finding] = []
    for node in (node for node in cluster.nodes if not only or node.name in only):
        probe = probes.get(node.name)
        if probe is None or "links" not in probe:
            why = str((probe or {}).get("msg", "no answer"))
            findings.append(Finding(node.name, "probe", why, "an answer from the probe", "run again with -v"))
            continue
        for endpoint in (e for e in plan.endpoints if e.node == node.name):
            findings += _endpoint(endpoint, probe)
        findings += _extra(node.name, cluster, plan, probe["links"])
        findings += _jumbo(node.name, probe["pings"], only)
        findings += _neighbours(node.name, probe)
        findings += _strangers(node.name, probe.get("let_in", {}).get("doors", ()))
    return findings


def strangers(probes: Mapping[str, Probe], only: Collection[str] = ()) -> list[Finding]:
    """Of rails that may be otherwise than planned: who is let in."""
    asked = {name: probe for name, probe in probes.items() if not only or name in only}
    return [row for name, probe in asked.items() for row in _strangers(name, probe.get("let_in", {}).get("doors", ()))]


def _strangers(node: str, doors: Collection[Mapping[str, Any]]) -> Iterator[Finding]:
    """One finding for each way in; a peer may well be refused by the host that a function lies on without a pod."""
    for by, who in STRANGERS.items():
        let_in = [door for door in doors if door["by"] == by and (by != "peer" or door["how"] == "answers")]
        if let_in:
            named = sorted({f"{door['node']}'s {door['address']}" for door in let_in})
            where = ", ".join(named[:SHOWN]) + (f" and {len(named) - SHOWN} more" if len(named) > SHOWN else "")
            at = ", ".join(str(port) for port in sorted({door["port"] for door in let_in}))
            closed = "playbooks/fabric.yml closes it: it loads the tables of nodes and pods anew"
            yield Finding(node, "private rails", f"{who} reaches {where} (port {at})", "no answer at all", closed)


def _endpoint(endpoint: Endpoint, probe: Probe) -> Iterator[Finding]:
    node, name = endpoint.node, f"rail {endpoint.rail} {'port' if endpoint.whole else f'VF {endpoint.vf}'}"
    link = probe["links"].get(endpoint.interface)
    if link is None:
        if endpoint.interface not in probe["in_pods"]:
            yield Finding(node, name, f"no {endpoint.interface}, on the host or in a pod", endpoint.interface, AGAIN)
        return
    if not (link["up"] and link["carrier"]):
        yield Finding(node, name, f"{endpoint.interface} down", "up with carrier", "the cable and the switch's port")
        return
    if link["mtu"] != endpoint.mtu:
        yield Finding(node, name, f"MTU {link['mtu']}", f"MTU {endpoint.mtu}", f"fabric.mtu in fabric.yml; {AGAIN}")
    if endpoint.cidr not in link["addresses"]:
        addresses = ", ".join(link["addresses"]) or "no IPv4 address"
        yield Finding(node, name, f"{endpoint.interface} with {addresses}", endpoint.cidr, AGAIN)
    elif not any(_is_rocev2(gid, endpoint.address) for gid in link["gids"]):
        kinds = ", ".join(f"{gid['index']}:{gid['type']} {gid['gid']}" for gid in link["gids"]) or "no RDMA device"
        found, expected = f"GIDs of {endpoint.interface}: {kinds}", f"a RoCE v2 GID for {endpoint.address}"
        change = "rdma link on the node: without this GID queue pairs fail with 'Network is unreachable'"
        yield Finding(node, name, found, expected, change)


def _extra(node: str, cluster: Cluster, plan: Plan, links: Mapping[str, Any]) -> Iterator[Finding]:
    """Addresses beside the planned ones: on a function each one, on any other link those in a rail's subnet."""
    planned = {e.interface: e for e in plan.endpoints if e.node == node}
    change = "playbooks/preflight.yml names the file that gives it; -e fabric_adopt=true takes it over"
    for name, link in links.items():
        own = planned.get(name)
        for cidr in link["addresses"]:
            holder = next((f", {e.node}'s on this rail" for e in plan.endpoints if e.address == cidr.split("/")[0]), "")
            # a function that lacks its own address has a finding already, which names what it has
            if own and own.cidr != cidr and own.cidr in link["addresses"]:
                what = f"rail {own.rail} VF {own.vf}"
                yield Finding(node, what, f"{name} with {cidr}{holder}", f"{own.cidr} alone", change)
            rail = None if own else cluster.fabric.rail_over(ipaddress.IPv4Interface(cidr).network)
            if rail:
                found = f"{name} with {cidr}{holder}"
                yield Finding(node, f"rail {rail.name}", found, "nothing of this rail there", change)


def _is_rocev2(gid: Mapping[str, Any], address: str) -> bool:
    mapped = ipaddress.IPv6Address(gid["gid"]).ipv4_mapped
    return "v2" in str(gid["type"]) and mapped == ipaddress.IPv4Address(address)


def _neighbours(node: str, probe: Probe) -> Iterator[Finding]:
    """RDMA goes to the MAC that ARP learned: where another port answers for a peer, small pings pass all the same."""
    for ping in probe["pings"]:
        learned = str(ping.get("neighbour", "")).lower()
        if ping["ok"] and learned and ping["mac"] and learned != ping["mac"].lower():
            name = f"{ping['interface']} to {ping['node']}"
            change = f"another port of {ping['node']} answers, or another machine has the address; {AGAIN}"
            yield Finding(node, name, f"{ping['address']} is at {learned}", ping["mac"], change)


def _jumbo(node: str, pings: list[Mapping[str, Any]], only: Collection[str]) -> Iterator[Finding]:
    """Which peers do not answer at full size; a node that reaches nobody gets one finding, not one per peer."""
    by_interface: dict[str, list[Mapping[str, Any]]] = {}
    for ping in pings:
        by_interface.setdefault(ping["interface"], []).append(ping)
    for interface, asked in by_interface.items():
        for small_ok in (True, False):
            silent = [ping for ping in asked if not ping["ok"] and ping["small_ok"] is small_ok]
            outside = [ping for ping in silent if only and ping["node"] not in only]
            inside = [ping for ping in silent if ping not in outside]
            if inside:
                everyone = len(silent) == len(asked)
                yield _silent(node, interface, silent if everyone else inside, everyone=everyone, small_ok=small_ok)
            elif outside:
                finding = _silent(node, interface, outside, everyone=False, small_ok=small_ok)
                yield replace(finding, fix=f"not part of this run (--limit); {finding.fix}", severity="warning")


def _silent(node: str, interface: str, silent: list[Mapping[str, Any]], *, everyone: bool, small_ok: bool) -> Finding:
    peers = "any other node" if everyone else ", ".join(ping["node"] for ping in silent)
    blamed = node if everyone else peers
    size = silent[0]["payload"] + 28
    found = f"no answer to {size} byte packets ({'smaller ones pass' if small_ok else 'nothing passes'})"
    cabled = "sparkloom fabric discover says who is behind which cable"
    change = f"the cable, the switch's VLAN, and the same rail of {blamed}; {cabled}"
    if small_ok:
        change = f"the MTU of the switch's ports and of {blamed}; or fabric.mtu in fabric.yml"
    return Finding(node, f"{interface} to {peers}", found, "an answer", change)
