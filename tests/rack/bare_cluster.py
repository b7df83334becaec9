"""What the tests of a K3s cluster on bare machines share: machines, playbooks, and questions asked on a machine."""

from __future__ import annotations

import json
import subprocess
from functools import partial
from typing import Any

from testbed.beds.bare import machines
from tests.rack.running import run
from tests.until import until

INVENTORY = "inventories/bare"
SERVER, AGENTS = "box1", ("spark1", "spark2")
patiently = partial(until, despite=(AssertionError, ValueError))


def on(machine: str, script: str, *, stdin: str = "", seconds: float = 120) -> subprocess.CompletedProcess[str]:
    command = ["docker", "exec", "-i", f"{machines.NAME}-{machine}", "bash", "-c", script]
    return subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=seconds)


def said(machine: str, script: str, *, stdin: str = "", seconds: float = 120) -> str:
    """What it printed; its failure fails the test with its words."""
    done = on(machine, script, stdin=stdin, seconds=seconds)
    assert done.returncode == 0, f"{machine}: {script}: {done.stderr or done.stdout}"
    return done.stdout.strip()


def kubectl(words: str, *, stdin: str = "") -> str:
    return said(SERVER, f"k3s kubectl {words}", stdin=stdin)


def asked(words: str) -> Any:
    return json.loads(kubectl(f"{words} -o json"))


def apply(*objects: dict[str, Any]) -> None:
    kubectl("apply -f -", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}))


def cluster_yml(*extra: str) -> subprocess.CompletedProcess[str]:
    words = ("-i", INVENTORY, "playbooks/cluster.yml", *extra)
    return run("ansible-playbook", *words, ANSIBLE_NOCOLOR="1", ANSIBLE_FORCE_COLOR="0", COLUMNS="400")


def bare(*words: str, k3s: str = "") -> str:
    done = run(".venv/bin/python", "-m", "testbed", "bare", *words, **({"SPARKLOOM_K3S": k3s} if k3s else {}))
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout + done.stderr
