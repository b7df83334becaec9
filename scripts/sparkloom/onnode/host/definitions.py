"""What defines a node's network ports: netplan's files, NetworkManager's and networkd's own, and the live addresses.

The controller reads the files, for it has YAML; passwords stay on the node.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from sparkloom.onnode.host.read import run, text
from sparkloom.onnode.task import Data

ROOT = Path("/")
# Folders in the order in which a file of the same name replaces the one before.
FOLDERS = {
    "netplan": (("lib/netplan", "etc/netplan", "run/netplan"), "*.yaml"),
    "NetworkManager": (
        tuple(f"{top}/NetworkManager/system-connections" for top in ("usr/lib", "etc", "run")),
        "*",
    ),
    "networkd": (("etc/systemd/network", "run/systemd/network"), "*.network"),
}
# A profile's lines that say which port it is for and what it gives; the rest, secrets too, is nobody's business here.
PROFILE_KEYS = ("id", "type", "interface-name", "master", "controller", "autoconnect-priority", "mac-address", "method")
PROFILE_LINE = re.compile(rf"\s*(\[|(?:{'|'.join(PROFILE_KEYS)}|address(?:es)?\d*)\s*=)")
SECRET = re.compile(
    r"""(?i)((?:password|passwd|psk|secret|token|key|pin)["']?\s*:[ \t]*)("[^"\n]*"|'[^'\n]*'|[^,}\s][^,}\n]*)"""
)


def definitions() -> list[Data]:
    """Every file that may define a port: `kind`, `path`, what it says, and whether that is all of it."""
    rows = []
    for kind, (folders, pattern) in FOLDERS.items():
        for path in (path for folder in folders for path in sorted((ROOT / folder).glob(pattern))):
            # what netplan made of its own files is known from those
            if path.is_file() and not (kind != "netplan" and "netplan-" in path.name):
                content = text(path) + "\n"
                said = spoken(kind, content)
                row = {"kind": kind, "path": f"/{path.relative_to(ROOT)}", "text": said}
                rows.append({**row, "whole": said == content})
    return rows


def spoken(kind: str, content: str) -> str:
    """The content without what is secret in it."""
    if kind == "NetworkManager":
        return "".join(line for line in content.splitlines(keepends=True) if PROFILE_LINE.match(line))
    return SECRET.sub(r"\1hidden", content) if kind == "netplan" else content


def links(sysfs: Path) -> dict[str, Data]:
    """Every link with its MACs, driver and IPv4 addresses; a port is one with a device behind it."""
    found = {}
    for link in json.loads(run("ip", "-json", "address", "show", timeout=60) or "[]"):
        device = sysfs / "class/net" / link["ifname"] / "device"
        found[link["ifname"]] = {
            "macs": sorted({str(link.get(key, "")).lower() for key in ("address", "permaddr")} - {""}),
            "driver": (device / "driver").resolve().name if (device / "driver").exists() else "",
            "port": device.exists(),
            "addresses": [f"{a['local']}/{a['prefixlen']}" for a in link["addr_info"] if a["family"] == "inet"],
        }
    return found
