"""Killed at a random task and run again: the same state as an unbroken run.

Twice by `make test-more`, twenty times by `make test-kills`. What is chosen so that a seed takes seconds: the parts of
site.yml that change nodes and cluster before weights move (nodes, fabric, network), and one node in each (`--limit`),
the next one in turn, which begins bare. It is made bare by a few shell commands instead of the product's
teardown; that this gives the state before any run is asserted first. The cluster loses Multus' settings and the
attachments each time; its daemon runs on, since its start is a wait and not a change. The first test and the last run
all four nodes.

What is killed is the whole process group of ansible-playbook, some time into a task; on half of the seeds the modules
that are at work on the nodes as well, as when the nodes lose power at that moment.
"""

from __future__ import annotations

import json
import os
import random
import shlex
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from sparkloom.onnode import rails_table
from sparkloom.render.manifests import attachments
from testbed.base import names
from testbed.beds.rack import cluster, inventory, state
from tests.later import LATER
from tests.places import REPO

pytestmark = [pytest.mark.rack, pytest.mark.slow, *LATER]
SEEDS = int(os.environ.get("SPARKLOOM_KILLS", "2"))  # `make test-kills` does twenty
PARTS = [part for name in ("serving", "cluster", "fabric", "nodes") for part in ("-e", f"teardown_{name}=true")]
# Not part of what an object should be.
VOLATILE = ("uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "annotations")
NETWORKS = "network-attachment-definitions.k8s.cni.cncf.io"
KINDS = f"namespaces,{NETWORKS},daemonsets,configmaps,serviceaccounts,clusterroles,clusterrolebindings"
OURS = ("-l", "app.kubernetes.io/part-of=sparkloom")
# Modules come over standard input, so that python3 without an argument is one of them.
KILL_MODULES = """
for process in /proc/[0-9]*; do
  case "$(tr '\\0' ' ' < $process/cmdline 2>/dev/null)" in "/usr/bin/python3 ") kill -9 "${process#/proc/}";; esac
done; true
"""


def ansible(playbook: str, *extra: str) -> subprocess.Popen[str]:
    env = {**os.environ, "PATH": f"{REPO}/.venv/bin:{os.environ['PATH']}", "ANSIBLE_NOCOLOR": "1"}
    command = ["ansible-playbook", "-i", str(inventory.path()), playbook, *extra]
    return subprocess.Popen(
        command, cwd=REPO, env={**env, "PYTHONUNBUFFERED": "1"}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, start_new_session=True,
    )  # fmt: skip


def site(*nodes: str) -> subprocess.Popen[str]:
    return ansible("site.yml", "--tags", "nodes,fabric,network", "--limit", ",".join(nodes or names.NODES))


def finish(process: subprocess.Popen[str]) -> str:
    output, _ = process.communicate()
    assert process.returncode == 0, output[-6000:]
    return output


def kubectl(*argv: str) -> str:
    command = [str(cluster.BIN / "kubectl"), f"--kubeconfig={names.KUBECONFIG}", *argv]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def on_nodes(scripts: dict[str, str]) -> None:
    def run(node: str) -> None:
        command = ["docker", "exec", names.NODES[node], "sh", "-c", scripts[node]]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, f"{node}: {done.stderr}"

    with ThreadPoolExecutor(len(scripts)) as pool:
        list(pool.map(run, scripts))


def everything(*nodes: str) -> dict[str, Any]:
    """The nodes, and what of ours is in the cluster, without what only counts or ages."""
    found = json.loads(kubectl("get", KINDS, "-A", "-o", "json", *OURS))["items"]
    for item in found:
        item.pop("status", None)
        for key in VOLATILE:
            item["metadata"].pop(key, None)
    return {"nodes": state.every(list(nodes)), "cluster": {f"{i['kind']} {i['metadata']['name']}": i for i in found}}


class Rack:
    """The state before any run, after an unbroken one, and the shell commands from the second to the first."""

    def __init__(self) -> None:
        finish(ansible("playbooks/teardown.yml", *PARTS))
        self.bare = state.every()
        self.tasks = finish(site()).count("\nTASK [")
        self.unbroken = everything()
        self.scripts = {node: self.script(node) for node in names.NODES}

    def script(self, node: str) -> str:
        before, after = self.bare[node], self.unbroken["nodes"][node]
        new = sorted(after["files"].keys() - before["files"].keys())
        assert all(before["files"][path] == after["files"][path] for path in before["files"]), "nothing was overwritten"
        # What Multus put there stays with its daemon; one of CNI's programs is the role's.
        multus = [path for path in new if path.startswith(("/etc/cni", names.CNI_CONF, names.CNI_BIN))]
        made = [path for path in new if path not in multus or path == f"{names.CNI_BIN}/{attachments.PRIVATE}"]
        lines = ["systemctl stop sparkloom-netplan-rollback.timer 2>/dev/null", f"rm -rf {shlex.join(made)}"]
        lines += [f"nft delete table inet {rails_table.TABLE} 2>/dev/null"]
        lines += ["systemctl daemon-reload", "netplan apply"]
        for name, link in before["links"].items():
            if link != after["links"][name]:
                lines += [f"ip address flush dev {name}", f"ip link set {name} down"]
                lines += [f"ip link set {name} address {link['mac']} mtu {link['mtu']}"]
                lines += [f"ip link set {name} up"] if link["up"] else []
        for path, value in before["settings"].items():
            if after["settings"].get(path, value) != value:
                lines.append(f"echo {shlex.quote(value.strip())} > {path}")
        return "\n".join([*lines, "true"])

    def make_bare(self, *nodes: str) -> None:
        kubectl("delete", "-n", "sparkloom", NETWORKS, "--all")
        kubectl("delete", "-n", "kube-system", "configmap", "multus-daemon-config", "--ignore-not-found")
        on_nodes({node: self.scripts[node] for node in nodes})

    def kill(self, node: str, after: int, pause: float, modules: bool) -> str:
        """SIGKILL to the whole group, `pause` seconds into its task number `after`; the task's name."""
        process = site(node)
        assert process.stdout
        name = ""
        for line in process.stdout:
            if line.startswith("TASK ["):
                after, name = after - 1, line.split("]")[0]
            if after < 0:
                break
        time.sleep(pause)
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        if modules:
            on_nodes({node: KILL_MODULES})
        return name


@pytest.fixture(scope="module")
def rack() -> Rack:
    return Rack()


def test_the_shell_commands_make_nodes_as_bare_as_they_were(rack: Rack) -> None:
    rack.make_bare(*names.NODES)
    kept = ("/etc/cni", names.CNI_CONF, names.CNI_BIN)
    now = state.every()
    found = [line for line in state.differences(rack.bare, now) if not any(f" {place}" in line for place in kept)]
    assert found == []
    finish(site())


@pytest.mark.parametrize("seed", range(SEEDS))
def test_killed_and_run_again_is_as_if_never_killed(rack: Rack, seed: int) -> None:
    chance, node = random.Random(seed), list(names.NODES)[seed % len(names.NODES)]
    after, pause = chance.randrange(rack.tasks), chance.uniform(0, 0.6)
    rack.make_bare(node)
    task = rack.kill(node, after, pause, modules=bool(chance.randrange(2)))
    finish(site(node))
    wanted = {**rack.unbroken, "nodes": {node: rack.unbroken["nodes"][node]}}
    found = state.differences(wanted, everything(node))
    assert found == [], f"killed {pause:.2f} s into {task}: " + "\n".join(found)


def test_then_nothing_is_left_to_do(rack: Rack) -> None:
    assert "changed=0" in finish(site()) and rack.tasks > 10
