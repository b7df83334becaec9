#!/usr/bin/python
from __future__ import annotations

import ipaddress
import json
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path

from ansible.module_utils import sparkloom_read as read
from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.sparkloom_knock import answered
from ansible.module_utils.sparkloom_read import number, run, text

DOCUMENTATION = r"""
module: sparkloom_probe
short_description: Read how a node's rails are
description:
  - Reads links, RDMA ports, GIDs and reachability in one run. Judging is the controller's work.
options:
  sysfs_root: {type: path, default: /sys, description: [Where sysfs is mounted.]}
  virtual_functions:
    type: list
    elements: dict
    default: []
    description: ["Interface, MAC or PCI place, and address of each; it may have moved into a pod."]
  settle_seconds:
    type: int
    default: 0
    description: ["How long to wait for addresses and GIDs to appear, and then for the first answer of each peer."]
  pings:
    type: list
    elements: dict
    default: []
    description: ["Interface, address and payload of each ping that must not be fragmented."]
  knocks:
    type: dict
    default: {}
    description:
      - "What should not answer (C(doors): by whom it is asked, address and port), the interface to the LAN, and the
        rails' subnets, by which a pod without a rail is told from one that has one."
"""


def gids(sysfs: Path) -> dict[str, list[dict]]:
    """Network interface -> its GIDs."""
    by_interface: dict[str, list[dict]] = {}
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


def links(sysfs: Path, tables: dict[str, list[dict]]) -> dict[str, dict]:
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


def settled(functions: list[dict], present: dict[str, dict]) -> bool:
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


def wait_for_links(args: dict) -> dict[str, dict]:
    sysfs = Path(args["sysfs_root"])
    until = time.monotonic() + args["settle_seconds"]
    while True:
        present = links(sysfs, gids(sysfs))
        if settled(args["virtual_functions"], present) or time.monotonic() > until:
            return present
        time.sleep(0.5)


def in_pods(functions: list[dict], present: dict[str, dict]) -> list[str]:
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


def ping(wanted: dict, patience: float) -> dict:
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


def main() -> None:
    dicts = {"type": "list", "elements": "dict", "default": []}
    module = AnsibleModule(
        argument_spec={
            "sysfs_root": {"type": "path", "default": "/sys"},
            "virtual_functions": dicts,
            "settle_seconds": {"type": "int", "default": 0},
            "pings": dicts,
            "knocks": {"type": "dict", "default": {}},
        },
        supports_check_mode=True,
    )
    args = module.params
    present = wait_for_links(args)
    knocks = args["knocks"]
    with ThreadPoolExecutor(max_workers=9) as pool:
        let_in = pool.submit(answered, **knocks) if knocks else None
        answers = list(pool.map(lambda wanted: ping(wanted, args["settle_seconds"]), args["pings"]))
    known = neighbours() if answers else {}
    module.exit_json(
        changed=False,
        links=present,
        rdma_ports=rdma_ports(Path(args["sysfs_root"])),
        in_pods=in_pods(args["virtual_functions"], present),
        let_in=let_in.result() if let_in else {"by": [], "doors": []},
        pings=[{**answer, "neighbour": known.get((answer["interface"], answer["address"]), "")} for answer in answers],
    )


if __name__ == "__main__":
    main()
