"""Does a firewall drop what the machines send each other? K3s, the pods and the engines' meeting all need it."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sparkloom.base.finding import Finding
from sparkloom.inputs.addressing import K3S_NETWORKS
from sparkloom.inputs.cluster import Cluster
from sparkloom.launch.fabric import Plan
from sparkloom.render.k3s.config import Machine

Network = ipaddress.IPv4Network
RULE = re.compile(r"^(?P<to>.+?)\s{2,}(?P<deed>ALLOW|LIMIT|DENY|REJECT)(?: IN)?\s{2,}(?P<source>.+?)\s*$", re.M)


@dataclass(frozen=True, slots=True)
class Need:
    """A network whose packets must come in, and the interfaces that they come in by, where these are known."""

    network: Network
    interfaces: frozenset[str] = frozenset()


def judge(
    cluster: Cluster, plan: Plan, machine: Machine, among: list[Machine], told: Mapping[str, Any]
) -> Iterator[Finding]:
    if told["firewalld"]:
        fix = (
            "sudo systemctl disable --now firewalld, as K3s' documentation asks; or put all these networks in `trusted`"
        )
        yield Finding(machine.name, "firewall", "firewalld runs", "nothing that drops the cluster's packets", fix)
    if machine.spark and cluster.fabric.rails and cluster.fabric.private and not told["nft"]:
        fix = "sudo apt-get install nftables; or fabric.private: false in fabric.yml, and anybody reaches the rails"
        yield Finding(machine.name, "firewall", "no nft", "the package nftables, which keeps the rails private", fix)
    status = told["ufw"]
    if "Status: active" not in status or re.search(r"^Default: allow \(incoming\)", status, re.M):
        return
    rules = [rule.groupdict() for rule in RULE.finditer(status)]
    blocked = [need.network for need in needs(cluster, plan, machine, among) if not let_in(rules, need)]
    if blocked:
        # rules for single ports may be enough; whoever wrote them knows
        own = any(rule["to"][0].isdigit() and not rule["to"].startswith("22") for rule in rules)
        listed = ", ".join(map(str, blocked))
        fix = "; ".join(f"sudo ufw allow from {network}" for network in blocked) + "; or sudo ufw disable"
        expected = "all of it let in: K3s, pods, and the ranks that meet on the rails"
        found = f"ufw drops what comes from {listed}"
        yield Finding(machine.name, "firewall", found, expected, fix, "warning" if own else "error")


def needs(cluster: Cluster, plan: Plan, machine: Machine, among: list[Machine]) -> list[Need]:
    """Who sends packets to this machine: the others, the pods, and on a Spark the rails."""
    wanted: list[Need] = []
    if machine.role:
        peers = [other.address for other in among if other.name != machine.name]
        known = [address for address in peers if re.fullmatch(r"[\d.]+", address)]
        wanted += [Need(Network(address), frozenset({machine.interface})) for address in known]
        given = {key: getattr(cluster.kubernetes, key) or usual for key, usual in K3S_NETWORKS.items()}
        wanted += [Need(Network(network)) for network in given.values()]
    for rail in cluster.fabric.rails if machine.spark else ():
        own = frozenset(e.interface for e in plan.endpoints if e.node == machine.name and e.half == rail.name)
        wanted.append(Need(Network(rail.subnet), own))
    return wanted


def let_in(rules: Sequence[Mapping[str, str]], need: Need) -> bool:
    """Whether all from a network passes: by a rule for any interface, or by one for each that it comes in by."""
    opened = set()
    for rule in rules:
        target, _, interface = rule["to"].partition(" on ")
        if rule["deed"] == "ALLOW" and target.strip() == "Anywhere" and _within(need.network, rule["source"]):
            if not interface:
                return True
            opened.add(interface.strip())
    return bool(need.interfaces) and need.interfaces <= opened


def _within(network: Network, source: str) -> bool:
    source = source.partition(" on ")[0].strip()
    if source == "Anywhere":
        return True
    try:
        return network.subnet_of(Network(source))
    except ValueError:  # IPv6
        return False
