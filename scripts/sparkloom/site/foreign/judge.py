"""Is a rail's port or subnet somebody else's already? Refused by file, with the ways out; or taken over by consent.

Netplan concatenates the addresses of all files, so a port that a guide set up keeps its addresses beside ours: in a
rail's subnet they are another node's serving address before long. Addresses elsewhere may stay where they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import yaml

from sparkloom.base.finding import Finding, Severity
from sparkloom.inputs.cluster import Cluster, Rail
from sparkloom.launch.fabric import Plan
from sparkloom.site.foreign import netplan
from sparkloom.site.foreign.netplan import Definition, interface
from sparkloom.site.foreign.node import NONE, Network, Node

NOTE = "# The rails of this file were taken over by sparkloom (fabric_adopt); playbooks/teardown.yml gives it back.\n"
EXPECTED = "a port and a subnet that nobody else defines"
ADOPT = (
    "-e fabric_adopt=true: playbooks/fabric.yml takes it over, the node keeps it as it was, and teardown_fabric gives "
    "it back byte for byte"
)


@dataclass(frozen=True, slots=True)
class Claim:
    """Something of somebody else on a rail's port or in its subnet."""

    rail: str
    found: str
    fix: str
    warns: bool = False
    definition: Definition | None = None
    live: tuple[str, str] | None = None  # interface and address that is in no file
    adoptable: bool = True


def claims(node: Node) -> list[Claim]:
    rows = [claim for definition in node.read.definitions for claim in _defined(node, definition)]
    return [*rows, *_live(node)]


def judge(cluster: Cluster, plan: Plan, node: str, network: Network | None, adopt: bool) -> list[Finding]:
    """Errors by file and address; with the consent only what cannot be taken over, and what will be."""
    me = Node(node, cluster, plan, network or NONE)
    wanted, fix = "a file that can be read", "mend the file: whether it defines a rail cannot be seen"
    unread = [
        Finding(node, f"rail {cluster.fabric.rails[0].name}", f"{path}: {why}", wanted, fix, "warning")
        for path, why in me.read.unreadable
    ]
    found = sorted((_finding(node, claim, adopt) for claim in claims(me)), key=lambda finding: finding.rule)
    return [*found, *unread]


def _finding(node: str, claim: Claim, adopt: bool) -> Finding:
    severity: Severity = "warning" if claim.warns else "error"
    finding = Finding(node, f"rail {claim.rail}", claim.found, EXPECTED, claim.fix, severity)
    if adopt and claim.adoptable and not claim.warns:
        taken = "nothing: playbooks/fabric.yml takes it over (fabric_adopt), teardown_fabric gives it back"
        return replace(finding, fix=taken, severity="warning")
    return finding


# --- files ----------------------------------------------------------------------------------------------------


def _defined(node: Node, definition: Definition) -> Iterator[Claim]:
    ports = node.ports()
    mine = node.covered(definition, ports)
    others = [name for name in node.covered(definition, node.links) if name not in ports]
    rail = ports[mine[0]][0] if mine else None
    inside = [(hit, cidr, file) for cidr, file in definition.addresses if (hit := _rail(node.cluster, cidr))]
    for hit, cidr, file in inside:
        what = f"{file} gives {_where(definition, mine, others)} {cidr}, in {hit.subnet}{_owner(node, cidr)}"
        yield _claim(node, definition, hit, what, others)
    if inside or rail is None:
        return
    file, named = _files(definition), ", ".join(mine)
    shadows = definition.kind == "networkd" or (definition.kind == "netplan" and definition.name not in mine)
    if definition.gives or shadows or any(ports[name][1] and definition.addresses for name in mine):
        given = [*definition.gives, *(cidr for cidr, _ in definition.addresses)]
        what = f"{file} defines {named} as '{definition.name}'" + (f" with {', '.join(given)}" if given else "")
        yield _claim(node, definition, rail, what, others, subnet=False)
    elif definition.addresses:
        what = f"{file} gives {named} {', '.join(cidr for cidr, _ in definition.addresses)}"
        fix = f"nothing: it is outside the rails' subnets and stays beside ours; or {ADOPT}"
        yield Claim(rail.half, what, fix, warns=True, definition=definition)


def _claim(
    node: Node, definition: Definition, rail: Rail, what: str, others: list[str], *, subnet: bool = True
) -> Claim:
    ways = [f"another subnet: fabric.rails[{rail.half}].subnet in fabric.yml"] if subnet else []
    if reason := _by_hand(node, definition, others):
        ways.append(f"take the rail's port out of {_files(definition)} by hand ({reason})")
        return Claim(rail.half, what, "; or ".join(ways), definition=definition, adoptable=False)
    return Claim(rail.half, what, "; or ".join([*ways, ADOPT]), definition=definition)


def _by_hand(node: Node, definition: Definition, others: list[str]) -> str:
    """Why a definition cannot be taken over; empty when it can."""
    if definition.section != "ethernets":
        return f"a part of its {definition.section}"
    if reached := node.management & set(others):
        return f"it defines {', '.join(sorted(reached))} too, the way to this node"
    whole = {file["path"]: file["whole"] for file in node.network["files"]}
    if definition.kind == "netplan" and not all(whole[path] for path in definition.files):
        return "it holds a password, which stays on the node"
    return ""


def _files(definition: Definition) -> str:
    return " and ".join(dict.fromkeys(definition.files))


def _where(definition: Definition, mine: list[str], others: list[str]) -> str:
    return ", ".join(mine or others) or f"'{definition.name}'"


def _rail(cluster: Cluster, cidr: str) -> Rail | None:
    """The rail whose subnet an address lies in, or whose addresses its own network would take in."""
    given = interface(cidr)
    return cluster.fabric.rail_over(given.network) if given else None


def _owner(node: Node, cidr: str) -> str:
    address = cidr.split("/")[0]
    holder = next((e for e in node.plan.endpoints if e.address == address), None)
    return f", which is what {holder.node} has on this rail" if holder else ""


# --- live -----------------------------------------------------------------------------------------------------


def _live(node: Node) -> Iterator[Claim]:
    """Addresses that no file explains: set by hand, by DHCP, or left by a file that has gone."""
    ports, ours, written = node.ports(), node.ours, {cidr for d in node.read.definitions for cidr, _ in d.addresses}
    for name, link in node.links.items():
        for cidr in link["addresses"]:
            if (name, cidr) in node.planned | ours or cidr in written or cidr.startswith("169.254."):
                continue
            port, rail = ports.get(name), _rail(node.cluster, cidr)
            if port and port[1] and ours:
                continue
            what = f"{name} has {cidr}, which no file of netplan, NetworkManager or networkd gives it"
            if rail or (port and port[1]):
                yield _live_claim(node, name, cidr, rail or ports[name][0], what, link)
            elif port:
                fix = "nothing: it is outside the rails' subnets; a reboot takes it away"
                yield Claim(port[0].half, what, fix, warns=True)


def _live_claim(node: Node, name: str, cidr: str, rail: Rail, what: str, link: Mapping[str, Any]) -> Claim:
    what += f"; it is in {rail.subnet}{_owner(node, cidr)}" if _rail(node.cluster, cidr) else ""
    other = f"another subnet: fabric.rails[{rail.half}].subnet in fabric.yml"
    if name in node.management or not link["port"]:
        reason = "the way to this node" if name in node.management else "no port of a card"
        return Claim(rail.half, f"{what} ({name} is {reason})", other, adoptable=False)
    return Claim(rail.half, what, f"{other}; or {ADOPT}", live=(name, cidr))


# --- taken over -----------------------------------------------------------------------------------------------


def changes(node: Node) -> dict[str, Any]:
    """`files`: path and new content, none for a file that goes; `addresses`: interface and cidr to take away.

    A file keeps what is not about the rails. The node keeps how each of them was.
    """
    taken = [claim for claim in claims(node) if claim.adoptable and not claim.warns]
    definitions = list(dict.fromkeys(claim.definition for claim in taken if claim.definition))
    live = dict.fromkeys(claim.live for claim in taken if claim.live)
    texts = {file["path"]: file["text"] for file in node.network["files"]}
    paths = dict.fromkeys(path for definition in definitions for path in definition.files)
    return {
        "files": [{"path": path, "content": _without(path, texts[path], definitions)} for path in paths],
        "addresses": [{"interface": name, "cidr": cidr} for name, cidr in [*live, *_of_files(node, definitions)]],
    }


def _of_files(node: Node, definitions: Iterable[Definition]) -> list[tuple[str, str]]:
    """A port that loses its file keeps its addresses until somebody takes them."""
    written = {cidr for definition in definitions for cidr, _ in definition.addresses}
    live = [(name, cidr) for name, link in node.links.items() for cidr in link["addresses"] if cidr in written]
    return [entry for entry in live if entry not in node.planned and entry[0] not in node.management]


def _without(path: str, text: str, definitions: Iterable[Definition]) -> str | None:
    mine = [definition for definition in definitions if path in definition.files]
    if any(definition.kind != "netplan" for definition in mine):
        return None
    data = netplan.network(text)
    for definition in mine:
        data[definition.section].pop(definition.name)
    for section in netplan.SECTIONS:
        if section in data and not data[section]:
            del data[section]
    if not set(data) - {"version"}:
        return None
    return NOTE + yaml.safe_dump({"network": data}, sort_keys=False)
