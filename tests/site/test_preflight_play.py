"""The playbook reads a server beside the Sparks as it reads them, asks each its own questions, and changes nothing."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import yaml

from tests import inventories
from tests.places import REPO

NAME = "beside"
HOSTS = {
    "all": {
        "children": {
            "sparks": {"hosts": {"spark1": {"management_address": "192.168.1.11", "fabric_index": 1}}},
            "k3s_servers": {"hosts": {"box1": {"management_address": "127.0.0.1", "management_interface": "lo"}}},
        },
        "vars": {"ansible_connection": "local", "ansible_python_interpreter": sys.executable},
    }
}


def test_a_box_is_read_and_judged_with_the_sparks(tmp_path: Path) -> None:
    site = inventories.own(tmp_path, "site")
    (site / "hosts.yml").write_text(yaml.safe_dump(HOSTS))
    cluster = site / "group_vars/all/cluster.yml"
    cluster.write_text(cluster.read_text().replace("name: gb10", f"name: {NAME}"))
    program = str(Path(sys.executable).with_name("ansible-playbook"))
    command = [program, "-i", str(site), "playbooks/preflight.yml", "-e", '{"profile": "", "preflight_cuda": "false"}']
    env = {**os.environ, "ANSIBLE_NOCOLOR": "1", "COLUMNS": "400"}
    kept = REPO / f"build/{NAME}"
    try:
        done = subprocess.run(command, cwd=REPO, env=env, capture_output=True, text=True, timeout=600, check=False)
        said = " ".join(done.stdout.split())
        # this machine is no Spark and has no such address; of the box neither is asked
        assert done.returncode == 2 and "changed=0" in said, done.stdout + done.stderr
        assert "on 2 node(s)" in said and "spark1 machine: found" in said and "box1 machine:" not in said
        assert "spark1 management: found nothing has 192.168.1.11" in said and "box1 management:" not in said
        nodes = json.loads((kept / "preflight.json").read_text())["nodes"]
        assert [row["name"] for row in nodes["spark1"]["reached"]] == ["box1"]
        assert nodes["spark1"]["reached"][0]["answers"] and nodes["box1"]["reached"][0]["name"] == "spark1"
    finally:
        shutil.rmtree(kept, ignore_errors=True)
