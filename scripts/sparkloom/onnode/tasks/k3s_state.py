"""Read what of K3s a machine has.

Reads units, programs, ports, what the running K3s was started with, and whether its node lives in the cluster.
Judging is the controller's work.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sparkloom.base import json_text
from sparkloom.onnode.host.k3s_node import Node
from sparkloom.onnode.host.read import digest, run, running, text
from sparkloom.onnode.task import Data, Task

MARK = "sparkloom"


def intact(path: str, expected: str) -> bool:
    try:
        return digest(Path(path)) == expected
    except OSError:
        return False


def unit(name: str) -> Data:
    shown = run("systemctl", "show", "-p", "ActiveState,UnitFileState,FragmentPath", f"{name}.service", timeout=30)
    facts = dict(line.split("=", 1) for line in shown.splitlines() if "=" in line)
    path = facts.get("FragmentPath", "")
    return {
        "exists": bool(path),
        "ours": bool(path) and MARK in text(Path(path)),
        "active": facts.get("ActiveState") in ("active", "reloading"),
        "enabled": facts.get("UnitFileState") == "enabled",
    }


def programs(record: str) -> Data:
    """{archive: its checksum, and whether what came out of it is still there unchanged}."""
    return {
        name: {"sha256": entry["sha256"], "intact": all(intact(*file) for file in entry["files"].items())}
        for name, entry in json_text.kept(Path(record)).items()
    }


def version(binary: str) -> str:
    match = re.search(r"\bv\d+\.\d+\.\d+\+k3s\d+", run(binary, "--version", timeout=30))
    return match[0] if match else ""


def stamp(path: str) -> Data:
    """What sha256sum wrote before K3s began: file -> hash."""
    return {name: hash_ for hash_, _, name in (line.partition("  ") for line in text(Path(path)).splitlines()) if name}


def addresses() -> Data:
    """{port: its addresses}; nothing where `ip` cannot tell."""
    try:
        ports = json.loads(run("ip", "-json", "address") or "[]")
    except ValueError:
        return {}
    return {port["ifname"]: [each["local"] for each in port["addr_info"] if "local" in each] for port in ports}


def main(
    task: Task,
    paths: Mapping[str, Any],  # where to look; the package names the places (render.k3s.paths)
    service: str,  # the unit that should run here
    node: str,  # the node's name in the cluster
) -> None:
    nvidia = shutil.which("nvidia-container-runtime", path=paths["search"]) or ""
    units = {name: unit(name) for name in paths["services"]}
    lives = Node(service, node, paths["binary"], paths["kubelet"])
    routes = [line for table in ("route", "ipv6_route") for line in text(Path("/proc/net", table)).splitlines()]
    task.exit_json(
        machine=os.uname().machine,
        version=version(paths["binary"]),
        programs=programs(paths["record"]),
        units=units,
        # A unit may run for ever without being let in, or its node may be dead: only the cluster can tell.
        waits=lives.waits_now() if units[service]["active"] else "",
        addresses=addresses(),
        stamp=stamp(paths["stamp"]),
        nvidia=nvidia,
        nvidia_known=bool(nvidia) and nvidia in text(Path(paths["containerd"])),
        kubelet=running("kubelet.service"),
        default_route=any(re.match(r"\S+\t00000000\t|0{32} 00 ", route) for route in routes),
        dropins=sorted(str(p) for p in Path(f"{paths['config']}.d").glob("*.y*ml")),
    )
