"""What the tests ask of the virtual machines, and the product's playbook run against them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sparkloom import cluster, fabric
from testbed.vm import login
from testbed.vm.names import Machine

REPO = Path(__file__).resolve().parents[2]
INVENTORY = REPO / "inventories/vm"
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


@dataclass
class Rack:
    """The machines, the plan that they are to follow, and the product's playbook."""

    machines: list[Machine]
    plan: fabric.Plan = field(default_factory=lambda: fabric.plan(cluster.load(INVENTORY)))

    def read(self, machine: Machine) -> dict[str, Any]:
        found = login.run([*login.argv(machine), "python3 -"], stdin=READ, timeout=300)
        return dict(json.loads(found.stdout))

    def playbook(self, *options: str) -> dict[str, dict[str, int]]:
        """Run the product's fabric playbook as a person would; gives the recap."""
        command = [Path(sys.executable).parent / "ansible-playbook", "-i", INVENTORY, "playbooks/fabric.yml", *options]
        environment = {**os.environ, "ANSIBLE_NOCOLOR": "1", "ANSIBLE_FORCE_COLOR": "0"}
        done = subprocess.run(command, cwd=REPO, env=environment, capture_output=True, text=True, timeout=1800)
        assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
        rows = re.findall(r"^(spark\d)\s+: (.*)$", done.stdout, re.MULTILINE)
        return {name: {key: int(n) for key, n in re.findall(r"(\w+)=(\d+)", row)} for name, row in rows}
