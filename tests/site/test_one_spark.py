"""One Spark without a cable: what is about rails is passed over and says so; nothing of the rest asks for them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from sparkloom import case
from sparkloom.inputs import inventory
from sparkloom.site import nodefiles
from sparkloom.site.checks import host
from tests import inventories
from tests.places import REPO
from tests.site.checks.test_preflight import Expected, at, machine

SOLO = "nvidia--nemotron-3-super-120b-a12b-nvfp4--vllm-1node"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """inventories/gb10 with the other Sparks struck out, reached without a connection."""
    folder = inventories.own(tmp_path, "solo")
    hosts = {
        "all": {
            "children": {
                "sparks": {"hosts": {"spark1": {"management_address": "192.168.1.11", "fabric_index": 1}}},
                "k3s_servers": {"hosts": {"spark1": None}},
            },
            "vars": {"ansible_connection": "local", "ansible_python_interpreter": sys.executable, "profile": SOLO},
        }
    }
    (folder / "hosts.yml").write_text(yaml.safe_dump(hosts))
    return folder


@pytest.mark.parametrize(
    ("playbook", "says"),
    [
        ("fabric", "one Spark alone needs none"),
        ("verify", "nothing to measure"),
        ("network", "Multus is not"),
    ],
)
def test_a_playbook_about_rails_passes_over(site: Path, playbook: str, says: str) -> None:
    program = str(Path(sys.executable).with_name("ansible-playbook"))
    command = [program, "-i", str(site), f"playbooks/{playbook}.yml", "--check"]
    env = {**os.environ, "ANSIBLE_NOCOLOR": "1"}
    done = subprocess.run(command, cwd=REPO, env=env, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0 and says in " ".join(done.stdout.split()), done.stdout + done.stderr
    assert "changed=0" in done.stdout


def test_preflight_asks_for_no_cable_and_the_launch_for_no_rail(site: Path) -> None:
    cluster = inventory.load(site)
    probe = machine()
    for pci in ("0000:01:00.0", "0002:01:00.0"):
        at(probe, pci).update(carrier=False, speed=-1, total_vfs=0)
    assert host.judge(cluster, {"spark1": probe}, Expected(driver="580.159")) == []
    assert "rail a" not in host.names(cluster)
    assert case.judge(SOLO, cluster).launch.fabric == ()
    assert nodefiles.every(cluster, case.fabrics.plan(cluster))["spark1"]["pings"] == []
