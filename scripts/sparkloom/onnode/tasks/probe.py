"""Read how a node's rails are.

Reads links, RDMA ports, GIDs and reachability in one run. Judging is the controller's work.
"""

from __future__ import annotations

import ipaddress
import json
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path
from typing import Any

from sparkloom.onnode.host import read
from sparkloom.onnode.host.read import number, run, text
from sparkloom.onnode.host.strangers import answered
from sparkloom.onnode.task import Data, Task


def gids(sysfs: Path) -> dict[str, list[Data]]:
    """Network interface -> its GIDs."""
    by_interface: dict[str, list[Data]] = {}
    for port in sorted(sysfs.glob("class/infiniband/*/ports/*")):
        for index, gid in read.gids(port / "gids"):
            interface = text(port / f"gid_attrs/ndevs/{index}")
            if interface:
                kind = text(port / f"gid_attrs/types/{index}")
                by_interface.setdefault(interface, []).append({"index": index, "gid": gid, "type": kind})
    return by_interface


def rdma_ports(sysfs: Path) -> dict[str, str]:
    """RDMA device -> state of its first port."""
    return {device.name: text(device / "ports/1/state") for device in sorted(sysfs.glob("class/infiniband/*"))}


def links(sysfs: Path, tables: dict[str, list[Data]]) -> dict[str, Data]:
    known = json.loads(run("ip", "-json", "address", "show", timeout=60) or "[]")
    facts = {}
    for link in known:
        name = link["ifname"]
        device = sysfs / "class/net" / name
        facts[name] = {
            "up": "UP" in link["flags"],
            "carrier": text(device / "carrier") == "1",
            "speed": number(device / "speed"),
            "mtu": link["mtu"],
            "mac": link.get("address", ""),
            "addresses": [f"{a['local']}/{a['prefixlen']}" for a in link["addr_info"] if a["family"] == "inet"],
            "total_vfs": number(device / "device/sriov_totalvfs"),
            "vfs": number(device / "device/sriov_numvfs"),
            "gids": tables.get(name, []),
        }
    return facts


def settled(functions: Sequence[Data], present: dict[str, Data]) -> bool:
    """Whether every function that is on the host has its address, and a GID made from it."""
    for wanted in functions:
        link = present.get(wanted["interface"])
        if link and not any(mapped(gid["gid"]) == wanted["address"] for gid in link["gids"]):
            return False
    return True


def mapped(gid: str) -> str:
    """The IPv4 address that a GID was made from, if it was."""
    try:
        return str(ipaddress.IPv6Address(gid).ipv4_mapped)
    except ValueError:
        return ""


def wait_for_links(sysfs: Path, functions: Sequence[Data], seconds: float) -> dict[str, Data]:
    until = time.monotonic() + seconds
    while True:
        present = links(sysfs, gids(sysfs))
        if settled(functions, present) or time.monotonic() > until:
            return present
        time.sleep(0.5)


def in_pods(functions: Sequence[Data], present: dict[str, Data]) -> list[str]:
    """Functions that are not on the host but live in another network namespace, by their MAC, their place, or the alias
    that the attachment leaves: one that a pod took before it had its MAC is there all the same."""
    away = [function for function in functions if function["interface"] not in present]
    marked = [(mark, f["interface"]) for f in away for mark in (f["mac"].lower(), f.get("pci"), f["interface"])]
    missing = {mark: interface for mark, interface in marked if mark}
    if not missing:
        return []
    seen, interfaces = {Path("/proc/self/ns/net").readlink()}, set()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            namespace = (process / "ns/net").readlink()
        except OSError:
            continue
        if namespace in seen:
            continue
        seen.add(namespace)
        show = ("ip", "-json", "-details", "link", "show")
        inside = json.loads(run("nsenter", "--target", process.name, "--net", *show) or "[]")
        told = [(link.get("address", "").lower(), link.get("parentdev"), link.get("ifalias")) for link in inside]
        marks = set(chain.from_iterable(told))
        interfaces |= {missing[mark] for mark in marks & missing.keys()}
    return sorted(interfaces)


def ping(wanted: Data, patience: float) -> Data:
    """Whether the peer answers at full size; it may still be bringing its own rail up."""

    def reaches(payload: int) -> bool:
        size = ("-M", "do", "-s", str(payload))
        return bool(run("ping", "-c", "2", "-i", "0.2", "-W", "1", *size, "-I", wanted["interface"], wanted["address"]))

    until = time.monotonic() + patience
    ok = reaches(wanted["payload"])
    while not ok and time.monotonic() < until:
        time.sleep(0.5)
        ok = reaches(wanted["payload"])
    return {**wanted, "ok": ok, "small_ok": ok or reaches(56)}


def neighbours() -> dict[tuple[str, str], str]:
    """Whose MAC answered for an address, on each interface."""
    table = json.loads(run("ip", "-4", "-json", "neighbour", "show") or "[]")
    return {(entry["dev"], entry["dst"]): entry["lladdr"] for entry in table if "lladdr" in entry}


def main(
    task: Task,
    sysfs_root: Path = Path("/sys"),  # where sysfs is mounted
    # Interface, MAC or PCI place, and address of each; it may have moved into a pod.
    virtual_functions: Sequence[Data] = (),
    # How long to wait for addresses and GIDs to appear, and then for the first answer of each peer.
    settle_seconds: int = 0,
    pings: Sequence[Data] = (),  # interface, address and payload of each ping that must not be fragmented
    # What should not answer (`doors`: by whom it is asked, address and port), the interface to the LAN, and the
    # rails' subnets, by which a pod without a rail is told from one that has one.
    knocks: Mapping[str, Any] = {},
) -> None:
    present = wait_for_links(sysfs_root, virtual_functions, settle_seconds)
    with ThreadPoolExecutor(max_workers=9) as pool:
        let_in = pool.submit(answered, **knocks) if knocks else None
        answers = list(pool.map(lambda wanted: ping(wanted, settle_seconds), pings))
    known = neighbours() if answers else {}
    task.exit_json(
        links=present,
        rdma_ports=rdma_ports(sysfs_root),
        in_pods=in_pods(virtual_functions, present),
        let_in=let_in.result() if let_in else {"by": [], "doors": []},
        pings=[{**answer, "neighbour": known.get((answer["interface"], answer["address"]), "")} for answer in answers],
    )
