"""What the tests ask of the virtual machines, and the product's playbook run against them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass, field
from ipaddress import IPv6Address
from pathlib import Path
from typing import Any

from sparkloom.inputs import inventory
from sparkloom.launch import fabric
from testbed.base import vm_names
from testbed.base.vm_names import Machine
from testbed.beds.vm import login
from tests.places import REPO

INVENTORY = REPO / "inventories/vm"
BEFORE = vm_names.STATE / "before.json"  # how the bare machines were; kept for a story that goes on with them
# One read of everything that a test may ask about a machine's rails; each SSH session costs seconds here.
READ = """
import glob, json, os, subprocess
def text(path):
    try:
        return open(path).read().strip()
    except OSError:
        return ""
def run(*argv):
    return json.loads(subprocess.run(argv, capture_output=True, text=True, check=True).stdout or "[]")
gids = {}
for folder in glob.glob("/sys/class/infiniband/*/ports/1"):
    rows = ((n, text(f"{folder}/gids/{n}"), text(f"{folder}/gid_attrs/types/{n}")) for n in range(16))
    gids[folder.split("/")[4]] = [row for row in rows if row[1].replace(":", "").strip("0")]
functions = {}
for path in glob.glob("/sys/class/net/*/device/virtfn*/net/*"):
    part = path.split("/")
    functions[part[8]] = [part[4], int(part[6].removeprefix("virtfn"))]
print(json.dumps({
    "links": {link["ifname"]: link for link in run("ip", "-json", "address")},
    "rdma": {link["ifname"]: link for link in run("rdma", "-j", "link")},
    "gids": gids, "functions": functions,
    "arp_ignore": {p.split("/")[6]: text(p) for p in glob.glob("/proc/sys/net/ipv4/conf/en*/arp_ignore")},
    "counts": {p.split("/")[4]: int(text(p)) for p in glob.glob("/sys/class/net/*/device/sriov_numvfs")},
}))
"""

# Everything of a machine that the fabric role may touch: files byte for byte, ports, kernel settings, enabled units.
PICTURE = """
import glob, hashlib, json, os, subprocess
def text(path):
    try:
        return open(path).read().strip()
    except OSError:
        return "unreadable"
picture = {}
for top in ("/etc", "/usr/local", "/var/lib/sparkloom"):
    for folder, names, files in os.walk(top):
        facts = os.lstat(folder)
        picture[folder] = [oct(facts.st_mode), facts.st_uid]
        for name in files:
            path = os.path.join(folder, name)
            facts = os.lstat(path)
            content = os.readlink(path) if os.path.islink(path) else hashlib.sha256(open(path, "rb").read()).hexdigest()
            picture[path] = [oct(facts.st_mode), facts.st_uid, facts.st_gid, content]
for port in ("enp1s0f0np0", "enp2s0f0np0"):
    picture[port] = text(f"/sys/class/net/{port}/device/sriov_numvfs")
    for version in ("ipv4", "ipv6"):
        for path in glob.glob(f"/proc/sys/net/{version}/conf/{port}/*"):
            picture[path] = text(path)
for link in json.loads(subprocess.run(["ip", "-j", "address"], capture_output=True, text=True).stdout):
    addresses = sorted(a["local"] for a in link["addr_info"] if a["scope"] == "global" or a["family"] == "inet")
    picture["link " + link["ifname"]] = [link["mtu"], sorted(link["flags"]), link.get("address"), addresses]
print(json.dumps(picture))
"""


@dataclass
class Rack:
    """The machines, the plan that they are to follow, and the product's playbook."""

    machines: list[Machine]
    plan: fabric.Plan = field(default_factory=lambda: fabric.plan(inventory.load(INVENTORY)))

    def read(self, machine: Machine) -> dict[str, Any]:
        found = login.run([*login.argv(machine), "python3 -"], stdin=READ, timeout=300)
        return dict(json.loads(found.stdout))

    def picture(self, machine: Machine) -> dict[str, Any]:
        found = login.run([*login.argv(machine), "python3 -"], stdin=PICTURE, timeout=300)
        return dict(json.loads(found.stdout))

    def run(self, playbook: str | Path, *options: str, inventory: Path = INVENTORY) -> subprocess.CompletedProcess[str]:
        command = [Path(sys.executable).parent / "ansible-playbook", "-i", inventory, playbook, *options]
        environment = {**os.environ, "ANSIBLE_NOCOLOR": "1", "ANSIBLE_FORCE_COLOR": "0"}
        start = time.monotonic()
        done = subprocess.run(command, cwd=REPO, env=environment, capture_output=True, text=True, timeout=1800)
        print(f"{Path(playbook).name}: {time.monotonic() - start:.0f} s")
        return done

    def playbook(self, playbook: str | Path = "playbooks/fabric.yml", *options: str) -> dict[str, dict[str, int]]:
        """Run one of the product's playbooks as a person would; gives the recap."""
        done = self.run(playbook, *options)
        assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
        rows = re.findall(r"^(spark\d)\s+: (.*)$", done.stdout, re.MULTILINE)
        return {name: {key: int(n) for key, n in re.findall(r"(\w+)=(\d+)", row)} for name, row in rows}

    def undo(self, folder: Path) -> None:
        """What teardown.yml does about the rails."""
        play = folder / "undo.yml"
        task = {"ansible.builtin.include_role": {"name": "roce_fabric", "tasks_from": "undo"}}
        play.write_text(json.dumps([{"hosts": "sparks", "become": True, "tasks": [task]}]))
        self.playbook(play)


def ipv4_gids(found: dict[str, Any], device: str) -> dict[str, int]:
    """Address -> index, of the RoCE v2 GIDs made from an IPv4 address."""
    pairs = (
        (IPv6Address(gid).ipv4_mapped, index) for index, gid, kind in found["gids"].get(device, []) if "v2" in kind
    )
    return {str(address): index for address, index in pairs if address}


def as_planned(rack: Rack, machine: Machine) -> list[str]:
    """What of the plan is not so on the machine; empty when all is."""
    found, wrong = rack.read(machine), []
    for e in rack.plan.of(machine.name):
        link, device = found["links"].get(e.interface, {}), found["rdma"].get(e.hca, {})
        addresses = [f"{a['local']}/{a['prefixlen']}" for a in link.get("addr_info", [])]
        facts = {
            "function": (found["functions"].get(e.interface), [e.pf, e.vf]),
            "mac": (link.get("address"), e.mac),
            "mtu": (link.get("mtu"), e.mtu),
            "addresses": (addresses, [e.cidr]),
            "arp_ignore": ([found["arp_ignore"].get(name) for name in (e.pf, e.interface)], ["1", "1"]),
            "carrier": ("LOWER_UP" in link.get("flags", []), True),
            "rdma": ((device.get("netdev"), device.get("state")), (e.interface, "ACTIVE")),
            "gid": (list(ipv4_gids(found, e.hca)), [e.address]),
        }
        wrong += [f"{machine.name} {e.interface} {key}: {got} is not {want}" for key, (got, want) in facts.items()
                  if got != want]  # fmt: skip
    return wrong
