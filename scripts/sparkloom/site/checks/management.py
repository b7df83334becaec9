"""The management network: does each machine have the address that the site wrote down, and do they reach each other?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sparkloom.base.finding import Finding
from sparkloom.render.k3s.config import Machine

Probe = Mapping[str, Any]


def judge(machines: list[Machine], read: Mapping[str, Probe]) -> Iterator[Finding]:
    """`read`: the machines that could be read; one that could not is named elsewhere."""
    for machine in machines:
        if machine.name in read:
            yield from _address(machine, read[machine.name]["network"]["links"])
    known = [machine for machine in machines if machine.name in read]
    yield from _reach(known, {machine.name for machine in machines} - set(read), read)
    yield from _names(known, read)


def reaches(machine: Machine, among: list[Machine]) -> list[Machine]:
    """Whom it talks to on the management network: a server to all, all to the servers. Sparks have their rails."""
    others = [other for other in among if other.name != machine.name and other.address]
    return [other for other in others if "server" in (machine.role, other.role)]


def _address(machine: Machine, links: Mapping[str, Any]) -> Iterator[Finding]:
    """K3s joins, serves and sends pods' traffic by this address on this port."""
    if not machine.address.replace(".", "").isdigit():  # none, a host's name, or IPv6, which is not read
        return
    held = {name: [cidr.split("/")[0] for cidr in link["addresses"]] for name, link in links.items()}
    holders = [name for name, addresses in held.items() if machine.address in addresses]
    severity: Any = "error" if machine.role else "warning"
    expected = f"{machine.address} on {machine.interface}"
    if holders and machine.interface not in holders:
        where = "cluster.management_interface in cluster.yml" if machine.spark else f"for {machine.name} in hosts.yml"
        fix = f"management_interface: {holders[0]} ({where}), or the cable in the other port"
        found = f"{machine.address} is on {holders[0]}"
        yield Finding(machine.name, "management", found, expected, fix, severity)
    elif not holders:
        there = held.get(machine.interface)
        other = next(iter(there or ()), "")
        has = f"{machine.interface} has {', '.join(there) or 'no address'}" if there is not None else ""
        has = has or f"there is no {machine.interface}, but {', '.join(sorted(set(held) - {'lo'}))}"
        fix = f"management_address: {other} for {machine.name} in hosts.yml, and reserve it in your router"
        if not other:
            fix = f"give {machine.interface} that address (the router's reservation, or netplan), and its cable"
        if there is None:
            fix = f"management_interface and management_address: `ip -4 -br addr` on {machine.name} shows them"
        yield Finding(machine.name, "management", f"nothing has {machine.address}; {has}", expected, fix, severity)


def _reach(known: list[Machine], unread: set[str], read: Mapping[str, Probe]) -> Iterator[Finding]:
    """A machine that nobody reaches is named once; else each one that does not get through.

    One that could not be read is named already; one that this run was not asked about answers too, or it does not.
    """
    rows = {machine.name: read[machine.name]["reached"] for machine in known}
    silent = {name: {row["name"]: row["address"] for row in told if not row["answers"]} for name, told in rows.items()}
    asking = {
        m.name: [name for name, told in rows.items() if any(row["name"] == m.name for row in told)] for m in known
    }
    away = {name for name, askers in asking.items() if askers and all(name in silent[asker] for asker in askers)}
    for machine in known:
        lost = {name: at for name, at in silent[machine.name].items() if name not in unread | away}
        if machine.name in away:
            askers = ", ".join(sorted(asking[machine.name]))
            yield _unreached(machine.name, f"no answer at {machine.address} to {askers}")
        elif lost:
            named = ", ".join(f"{name} at {at}" for name, at in lost.items())
            yield _unreached(machine.name, f"no answer from {named}")


def _unreached(where: str, found: str) -> Finding:
    fix = "cable, VLAN and gateway of the management port, management_address in hosts.yml, a firewall between them"
    return Finding(where, "reach", found, "answers, there and back: K3s joins by these addresses", fix)


def _names(known: list[Machine], read: Mapping[str, Probe]) -> Iterator[Finding]:
    names: dict[str, list[str]] = {}
    for machine in known:
        names.setdefault(read[machine.name]["system"]["name"], []).append(machine.name)
    for name, holders in names.items():
        fix = f"sudo hostnamectl set-hostname on each, as in hosts.yml: {name}.local may be either, and logs mix them"
        found = f"{name} on {', '.join(holders)}"
        for holder in holders if len(holders) > 1 else ():
            yield Finding(holder, "hostname", found, "a name of its own", fix, "warning")
