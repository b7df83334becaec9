"""The playbook reads a server beside the Sparks as it reads them, asks each its own questions, and changes nothing."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pexpect
import yaml

from tests import inventories
from tests.places import REPO
from tests.site.checks.test_preflight import FIRST_WEEK, NODES, SETTINGS, TOLD, machine

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
        assert "on 2 nodes" in said and "spark1 machine: found" in said and "box1 machine:" not in said
        assert "spark1 management: found nothing has 192.168.1.11" in said and "box1 management:" not in said
        nodes = json.loads((kept / "preflight.json").read_text())["nodes"]
        assert [row["name"] for row in nodes["spark1"]["reached"]] == ["box1"]
        assert nodes["spark1"]["reached"][0]["answers"] and nodes["box1"]["reached"][0]["name"] == "spark1"
    finally:
        shutil.rmtree(kept, ignore_errors=True)


def test_ten_faults_are_what_a_window_shows_at_the_end(tmp_path: Path) -> None:
    """Red before: of the screen, recap and times left the last lines, and the worst had scrolled away."""
    probes = {node: machine(node) for node in NODES}
    for number, fault in enumerate(FIRST_WEEK):
        for node in NODES if number == 0 else NODES[2:3]:
            fault(probes[node])
    site = inventories.own(tmp_path, "site")
    sparks = {name: {"management_address": f"192.168.1.1{n}", "fabric_index": n} for n, name in enumerate(NODES, 1)}
    (site / "hosts.yml").write_text(yaml.safe_dump({"all": {"children": {"sparks": {"hosts": sparks}}}}))
    cluster = site / "group_vars/all/cluster.yml"
    cluster.write_text(cluster.read_text().replace("name: gb10", "name: ten-faults"))
    read = {"name": "Read", "ansible.builtin.set_fact": {"probe": "{{ probes[inventory_hostname] }}"}}
    judge = {"name": "Judge", "run_once": True, "sparkloom": {
        "do": "site.preflight", "probe": "probe", "settings": "{{ settings }}"}}  # fmt: skip
    plays = [{"hosts": "sparks", "gather_facts": False, "any_errors_fatal": True, "tasks": [read, judge]}]
    (tmp_path / "play.yml").write_text(yaml.safe_dump(plays))
    (tmp_path / "told.json").write_text(json.dumps({"probes": probes, "settings": SETTINGS}))
    words = ["-i", str(site), str(tmp_path / "play.yml"), "-e", f"@{tmp_path / 'told.json'}"]
    env = {**os.environ, "ANSIBLE_NOCOLOR": "1", "TERM": "xterm"}
    try:
        typed = pexpect.spawn(
            str(Path(sys.executable).with_name("ansible-playbook")), words,
            cwd=REPO, env=env, dimensions=(24, 80), encoding="utf-8", timeout=120,
        )  # fmt: skip
        typed.expect(pexpect.EOF)
        typed.close()
        seen = typed.before.splitlines()[-22:]  # and above them an empty line, below them the prompt
        assert typed.exitstatus == 2 and max(map(len, seen)) <= 80, typed.before
        assert "3 to mend, 10 to know" in seen[0] and "all of it: build/ten-faults/preflight.txt; mend it" in seen[21]
        faults = [line.split("  ", 2) for line in seen[1:21:2]]
        assert [mark for mark, *_ in faults] == ["FAIL"] * 3 + ["warn"] * 7
        assert {said.partition(":")[0] for *_, said in faults} == set(TOLD)
        assert all(line.startswith("      do: ") for line in seen[2:21:2])
    finally:
        shutil.rmtree(REPO / "build/ten-faults", ignore_errors=True)
