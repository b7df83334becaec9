"""What else lives on a machine that is to serve: a desktop, Docker, updates that wait, a radio, the GPU's daemon."""

from __future__ import annotations

import re
from pathlib import Path

from sparkloom.onnode.host import pci
from sparkloom.onnode.host.read import run, running, text
from sparkloom.onnode.task import Data

PROC, APT = Path("/proc"), Path("/etc/apt/apt.conf.d")
DRIVERS = re.compile(r"^((?:nvidia-driver|linux-image|linux-modules|libnvidia|mlnx|doca)[\w.+-]*)/.*upgradable", re.M)
CONTAINER = re.compile(r"docker[-/]([0-9a-f]{12})[0-9a-f]*(?:\.scope)?$", re.M)


def read(sysfs: Path, users_of_gpu: list[int]) -> Data:
    """Empty is well: each is named by what was found."""
    return {
        "wifi": [port.parent.name for port in sorted((sysfs / "class/net").glob("*/phy80211"))],
        "forward": forward(run("iptables", "-w", "5", "-S", "FORWARD")),
        "containers": sorted(filter(None, map(container, users_of_gpu))),
        "session": session(run("loginctl", "list-sessions", "--no-legend")),
        "updates": updates() if unattended() else [],
        "zone": run("timedatectl", "show", "-p", "Timezone", "--value").strip(),
        "persistence": run("systemctl", "show", "-p", "ActiveState", "--value", "nvidia-persistenced.service").strip(),
        "mstflint": bool(pci.hotplug(sysfs).get("enabled")) and running("dgx-dashboard-admin.service"),
    }


def forward(rules: str) -> str:
    """The policy for what no rule lets through; nothing where a cluster's network has rules of its own."""
    return "" if re.search(r"-j (KUBE|FLANNEL|CILIUM|cali)", rules) else rules.partition("\n")[0].rpartition(" ")[2]


def container(pid: int) -> str:
    """The Docker container that a process runs in, by its name where Docker tells it."""
    found = CONTAINER.search(text(PROC / str(pid) / "cgroup"))
    return (run("docker", "inspect", "-f", "{{.Name}}", found[1]).strip().strip("/") or found[1]) if found else ""


def session(listed: str) -> str:
    """Who is logged in at the desktop; its greeter is nobody."""
    for words in map(str.split, listed.splitlines()):
        told = run("loginctl", "show-session", words[0], "-p", "Type", "-p", "Class", "-p", "Name")
        said = dict(line.split("=", 1) for line in told.splitlines() if "=" in line)
        if said.get("Type") in ("x11", "wayland") and said.get("Class") == "user":
            return said["Name"]
    return ""


def unattended() -> bool:
    return re.search(r'^\s*APT::Periodic::Unattended-Upgrade\s+"[1-9]', text(APT / "20auto-upgrades"), re.M) is not None


def updates() -> list[str]:
    """Drivers and kernels that unattended upgrades would change under a running engine."""
    return DRIVERS.findall(run("env", "LC_ALL=C", "apt", "list", "--upgradable", timeout=60))
