"""The live links that netplan's file describes: what differs, and how they were before the first change."""

from __future__ import annotations

import contextlib
import ipaddress
import json
import re
from collections.abc import Iterable
from pathlib import Path

from sparkloom.onnode.host import backup
from sparkloom.onnode.task import Data, Task

PROC = Path("/proc/sys/net")
# What networkd sets on a link that it manages, and leaves there when it no longer does.
KEYS = ("ipv4/{}/promote_secondaries", "ipv6/{}/disable_ipv6", "ipv6/{}/addr_gen_mode", "ipv6/{}/accept_ra")


def read(task: Task) -> dict[str, Data]:
    _, out, _ = task.run_command(["ip", "-json", "address", "show"])
    return {link["ifname"]: link for link in json.loads(out or "[]")}


def cidrs(link: Data, *families: str) -> set[str]:
    return {f"{a['local']}/{a['prefixlen']}" for a in link["addr_info"] if a["family"] in (families or ("inet",))}


def is_up(link: Data) -> bool:
    return "UP" in link["flags"]


def extra(want: Data, link: Data, subnets: Iterable[str]) -> set[str]:
    """Addresses that a link has beside its own: on a function every one, on its port those in a rail's subnet."""
    if want.get("cidr"):
        return cidrs(link, "inet", "inet6") - {want["cidr"]}  # NetworkManager leaves it a link-local one
    networks = [ipaddress.ip_network(subnet) for subnet in subnets]
    return {cidr for cidr in cidrs(link) if any(ipaddress.ip_interface(cidr).network.overlaps(n) for n in networks)}


def differing(task: Task, expect: list[Data], subnets: Iterable[str]) -> list[str]:
    """Links on the host that are not as described; one that moved into a pod is not on the host."""
    present, wrong = read(task), []
    for want in expect:
        link = present.get(want["interface"])
        if link is None:
            continue
        lacks = bool(want.get("cidr")) and want["cidr"] not in cidrs(link)
        if link["mtu"] != want["mtu"] or lacks or extra(want, link, subnets):
            wrong.append(want["interface"])
    return wrong


def left(before: str, expect: Iterable[Data]) -> list[Data]:
    """Addresses that our file gave so far to interfaces that it is to say nothing of any more; networkd leaves them.

    Read without a YAML library, which a node's Python need not have: the file is ours, and always of this form.
    """
    kept = {want["interface"] for want in expect}
    given = re.findall(r"^    (\w+):\n((?:      .*\n)+)", before, re.M)
    return [
        {"interface": name, "cidr": cidr}
        for name, settings in given
        if name not in kept
        for cidr in re.findall(r"^      - (\S+/\d+)$", settings, re.M)
    ]


def take(task: Task, expect: list[Data], subnets: Iterable[str], addresses: Iterable[Data]) -> None:
    """Addresses that stay although no file gives them any more."""
    present = read(task)
    gone = {(entry["interface"], entry["cidr"]) for entry in addresses}
    gone |= {
        (w["interface"], c)
        for w in expect
        if w["interface"] in present
        for c in extra(w, present[w["interface"]], subnets)
    }
    for name, cidr in sorted(gone):
        if name in present and cidr in cidrs(present[name], "inet", "inet6"):
            task.run_command(["ip", "address", "delete", cidr, "dev", name])


# --- where it began -------------------------------------------------------------------------------------------


def kernel(interface: str) -> dict[str, str]:
    paths = (key.replace("{}", f"conf/{interface}") for key in KEYS)
    return {path: (PROC / path).read_text().strip() for path in paths if (PROC / path).exists()}


def remember(task: Task, name: str, interfaces: Iterable[str], addresses: Iterable[Data]) -> None:
    """Once for each link: netplan leaves an MTU or an address when a file goes. What is taken later is added."""
    kept = backup.load("links", name) or {}
    present = read(task)
    for interface in interfaces:
        if (link := present.get(interface)) and interface not in kept:
            facts = {"mtu": link["mtu"], "up": is_up(link), "cidrs": sorted(cidrs(link)), "kernel": kernel(interface)}
            kept[interface] = facts
    for entry in addresses:
        if was := kept.get(entry["interface"]):
            was["cidrs"] = sorted({*was["cidrs"], entry["cidr"]})
    backup.save("links", name, kept)


def restore(task: Task, name: str, up: set[str]) -> None:
    """`up`: a port that the undo of its functions has put down already stays so."""
    present = read(task)
    for interface, was in (backup.load("links", name) or {}).items():
        link = present.get(interface)
        if link is None:
            continue
        for cidr in sorted(cidrs(link) - set(was["cidrs"])):
            task.run_command(["ip", "address", "delete", cidr, "dev", interface])
        for key, value in was["kernel"].items():
            with contextlib.suppress(OSError):  # a mode that only the kernel itself may choose
                (PROC / key).write_text(value)
        task.run_command(["ip", "link", "set", interface, "mtu", str(was["mtu"])], check_rc=True)
        task.run_command(["ip", "link", "set", interface, "down"], check_rc=True)
        if was["up"] and interface in up:
            task.run_command(["ip", "link", "set", interface, "up"], check_rc=True)
        for cidr in sorted(set(was["cidrs"]) - cidrs(link)):
            task.run_command(["ip", "address", "add", cidr, "dev", interface])
