"""What a node is, as data to compare: files with their bytes, kernel settings, units, links, rails' table.

`python -m testbed rack state [NODE…]`. Read from outside (docker exec), by other means than the product's own modules.
"""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from testbed.base import names
from testbed.base.shell import out

# Runs on the node. What only counts, ages or depends on the boot is left out.
READ = r"""
import hashlib, json, os, pathlib, subprocess
FOLDERS, MOVING = @@
def sha(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]
files = {}
for folder in FOLDERS:
    for path in sorted(pathlib.Path(folder).rglob("*")):
        facts = path.lstat()
        kind = "link " + os.readlink(path) if path.is_symlink() else "folder" if path.is_dir() else sha(path)
        files[str(path)] = "%o %d:%d %s" % (facts.st_mode & 0o7777, facts.st_uid, facts.st_gid, kind)
def run(*argv):
    return subprocess.run(argv, capture_output=True, text=True).stdout
settings = {}
for path in sorted(pathlib.Path("/proc/sys/net").rglob("*")):  # the rest is this machine's, not the container's
    if path.is_file() and not any(word in str(path) for word in MOVING):
        try:
            settings[str(path)] = path.read_text()
        except OSError:
            pass
links = {}
for link in json.loads(run("ip", "-json", "address", "show")):
    if link["ifname"].lower().startswith("enp"):
        links[link["ifname"]] = {
            "mtu": link["mtu"], "mac": link["address"], "up": "UP" in link["flags"],
            "addresses": sorted(a["local"] for a in link["addr_info"] if a["family"] == "inet"),
        }
units = run("systemctl", "list-unit-files", "--no-legend", "--no-pager", "--plain", "sparkloom-*").split("\n")
timers = run("systemctl", "list-timers", "--all", "--no-legend", "--no-pager", "sparkloom-*")
rails = run("nft", "--stateless", "list", "table", "inet", "sparkloom_rails")
print(json.dumps({"files": files, "rails": rails.splitlines(), "settings": settings, "links": links,
                  "timers": "netplan-rollback" in timers,
                  "units": sorted(" ".join(u.split()[:2]) for u in units if u and "testbed" not in u)}))
"""
FOLDERS = ("/etc", "/usr/local", "/var/lib/sparkloom", names.CNI_CONF, names.CNI_BIN)
# Settings that the kernel moves, and those of pods' interfaces.
MOVING = (
    "/veth",
    "/cni",
    "nf_conntrack_count",
    "route/flush",
    "tcp_fastopen_key",
    "stable_secret",
    "nf_log",
)
# Files that a running node writes by itself.
NOISE = ("/etc/machine-id", "/etc/ld.so.cache", "/etc/kubernetes/", "/etc/mtab", "/etc/.pwd.lock", "/etc/resolv.conf")


def read(node: str) -> dict[str, Any]:
    program = READ.replace("@@", repr((FOLDERS, MOVING)))
    state: dict[str, Any] = json.loads(out(["docker", "exec", names.NODES[node], "python3", "-c", program]))
    state["files"] = {path: content for path, content in state["files"].items() if not path.startswith(NOISE)}
    return state


def every(nodes: list[str] | None = None) -> dict[str, dict[str, Any]]:
    chosen = nodes or list(names.NODES)
    with ThreadPoolExecutor(len(chosen)) as pool:
        return dict(zip(chosen, pool.map(read, chosen), strict=True))


def differences(before: Any, after: Any, path: str = "") -> list[str]:
    """One line for each leaf that differs."""
    if isinstance(before, dict) and isinstance(after, dict):
        keys = sorted(before.keys() | after.keys())
        return [line for key in keys for line in differences(before.get(key), after.get(key), f"{path} {key}".strip())]
    return [] if before == after else [f"{path}: {before!r} -> {after!r}"]
