#!/usr/bin/python
from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.sparkloom_k3s_node import Node
from ansible.module_utils.sparkloom_read import digest, run, text

DOCUMENTATION = r"""
module: sparkloom_k3s_state
short_description: Read what of K3s a machine has
description:
  - Reads units, programs, ports, what the running K3s was started with, and whether its node lives in the cluster.
  - Judging is the controller's work.
options:
  paths: {type: dict, required: true, description: [Where to look; the package names the places (render.k3s.paths).]}
  service: {type: str, required: true, description: [The unit that should run here.]}
  node: {type: str, required: true, description: [The node's name in the cluster.]}
"""

MARK = "sparkloom"


def intact(path: str, expected: str) -> bool:
    try:
        return digest(Path(path)) == expected
    except OSError:
        return False


def service(name: str) -> dict:
    shown = run("systemctl", "show", "-p", "ActiveState,UnitFileState,FragmentPath", f"{name}.service", timeout=30)
    facts = dict(line.split("=", 1) for line in shown.splitlines() if "=" in line)
    path = facts.get("FragmentPath", "")
    return {
        "exists": bool(path),
        "ours": bool(path) and MARK in text(Path(path)),
        "active": facts.get("ActiveState") in ("active", "reloading"),
        "enabled": facts.get("UnitFileState") == "enabled",
    }


def programs(record: str) -> dict:
    """{archive: its checksum, and whether what came out of it is still there unchanged}."""
    try:
        known = json.loads(text(Path(record)) or "{}")
    except ValueError:
        known = {}
    return {
        name: {"sha256": entry["sha256"], "intact": all(intact(*file) for file in entry["files"].items())}
        for name, entry in known.items()
    }


def version(binary: str) -> str:
    match = re.search(r"\bv\d+\.\d+\.\d+\+k3s\d+", run(binary, "--version", timeout=30))
    return match[0] if match else ""


def stamp(path: str) -> dict:
    """What sha256sum wrote before K3s began: file -> hash."""
    return {name: hash_ for hash_, _, name in (line.partition("  ") for line in text(Path(path)).splitlines()) if name}


def addresses() -> dict:
    """{port: its addresses}; nothing where `ip` cannot tell."""
    try:
        ports = json.loads(run("ip", "-json", "address") or "[]")
    except ValueError:
        return {}
    return {port["ifname"]: [each["local"] for each in port["addr_info"] if "local" in each] for port in ports}


def main() -> None:
    required = {"type": "str", "required": True}
    spec = {"paths": {"type": "dict", "required": True}, "service": required, "node": required}
    module = AnsibleModule(argument_spec=spec, supports_check_mode=True)
    paths, wanted = module.params["paths"], module.params["service"]
    nvidia = shutil.which("nvidia-container-runtime", path=paths["search"]) or ""
    units = {name: service(name) for name in paths["services"]}
    node = Node(wanted, module.params["node"], paths["binary"], paths["kubelet"])
    routes = [line for table in ("route", "ipv6_route") for line in text(Path("/proc/net", table)).splitlines()]
    module.exit_json(
        changed=False,
        machine=os.uname().machine,
        version=version(paths["binary"]),
        programs=programs(paths["record"]),
        units=units,
        # A unit may run for ever without being let in, or its node may be dead: only the cluster can tell.
        waits=node.waits_now() if units[wanted]["active"] else "",
        addresses=addresses(),
        stamp=stamp(paths["stamp"]),
        nvidia=nvidia,
        nvidia_known=bool(nvidia) and nvidia in text(Path(paths["containerd"])),
        kubelet=run("systemctl", "is-active", "kubelet.service", timeout=30).strip() == "active",
        default_route=any(re.match(r"\S+\t00000000\t|0{32} 00 ", route) for route in routes),
        dropins=sorted(str(p) for p in Path(f"{paths['config']}.d").glob("*.y*ml")),
    )


if __name__ == "__main__":
    main()
