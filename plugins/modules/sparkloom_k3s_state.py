#!/usr/bin/python
"""Read what of K3s a machine has and with what the running one was started. Changes nothing, prints no secret."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = r"""
module: sparkloom_k3s_state
short_description: Read what of K3s a machine has
description: [Reads units, programs and what the running K3s was started with. Judging is the controller's work.]
options:
  paths: {type: dict, required: true, description: [Where to look; the package names the places (render.k3s.paths).]}
author: [Sparkloom]
"""

MARK = "sparkloom"
# K3s searches its own PATH; these are its unit's.
SEARCH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def run(*argv: str) -> str:
    try:
        return subprocess.run(argv, capture_output=True, text=True, timeout=30, check=False).stdout
    except (OSError, subprocess.SubprocessError):
        return ""


def text(path: str) -> str:
    try:
        return Path(path).read_text(errors="replace")
    except OSError:
        return ""


def digest(path: str) -> str:
    checksum = hashlib.sha256()
    try:
        with open(path, "rb") as stream:  # noqa: PTH123
            while block := stream.read(1 << 20):
                checksum.update(block)
    except OSError:
        return ""
    return checksum.hexdigest()


def service(name: str) -> dict:
    shown = run("systemctl", "show", "-p", "ActiveState,UnitFileState,FragmentPath", f"{name}.service")
    facts = dict(line.split("=", 1) for line in shown.splitlines() if "=" in line)
    path = facts.get("FragmentPath", "")
    return {
        "exists": bool(path),
        "ours": MARK in text(path) if path else False,
        "active": facts.get("ActiveState") in ("active", "reloading"),
        "enabled": facts.get("UnitFileState") == "enabled",
    }


def programs(record: str) -> dict:
    """{archive: its checksum, and whether what came out of it is still there unchanged}."""
    try:
        known = json.loads(text(record) or "{}")
    except ValueError:
        known = {}
    return {
        name: {"sha256": entry["sha256"], "intact": all(digest(p) == h for p, h in entry["files"].items())}
        for name, entry in known.items()
    }


def version(binary: str) -> str:
    match = re.search(r"\bv\d+\.\d+\.\d+\+k3s\d+", run(binary, "--version") if os.access(binary, os.X_OK) else "")
    return match[0] if match else ""


def stamp(path: str) -> dict:
    """What sha256sum wrote before K3s began: file -> hash."""
    return {name: hash_ for hash_, _, name in (line.partition("  ") for line in text(path).splitlines()) if name}


def main() -> None:
    module = AnsibleModule(argument_spec={"paths": {"type": "dict", "required": True}}, supports_check_mode=True)
    paths = module.params["paths"]
    nvidia = shutil.which("nvidia-container-runtime", path=SEARCH) or ""
    units = {name: service(name) for name in paths["services"]}
    routes = text("/proc/net/route").splitlines()[1:] + text("/proc/net/ipv6_route").splitlines()
    module.exit_json(
        changed=False,
        machine=os.uname().machine,
        version=version(paths["binary"]),
        programs=programs(paths["record"]),
        units=units,
        stamp=stamp(paths["stamp"]),
        nvidia=nvidia,
        nvidia_known=bool(nvidia) and nvidia in text(paths["containerd"]),
        kubelet=run("systemctl", "is-active", "kubelet.service").strip() == "active",
        default_route=any(re.match(r"\S+\t00000000\t|0{32} 00 ", route) for route in routes),
        dropins=sorted(str(p) for p in Path(f"{paths['config']}.d").glob("*.y*ml")),
    )


if __name__ == "__main__":
    main()
