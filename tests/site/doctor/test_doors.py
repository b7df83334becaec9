"""The doctor by itself: one run, and no run of a role before it, none of its variables."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sparkloom.site import executor
from sparkloom.site.ansible import Context
from sparkloom.site.doctor import asking
from tests import inventories
from tests.places import REPO
from tests.plugins.loading import context

PROFILE = "nvidia--nemotron-3-ultra-550b-a55b-nvfp4"
# Cabled through the outer port: pods of a rack beside this test have functions of the inner one.
OUTER = {
    "mtu": 9000, "first_host": 11, "vfs_per_rail": 2, "serving_vf": 0, "check_vf": 1, "lossless": False,
    "rails": [{"name": "a", "pf": "enp1s0f1np1", "pci": "0000:01:00.1", "subnet": "192.168.100.0/24"},
              {"name": "b", "pf": "enP2p1s0f1np1", "pci": "0002:01:00.1", "subnet": "192.168.101.0/24"}],
}  # fmt: skip


@pytest.fixture(scope="module")
def heard(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[dict[str, Any]], str]:
    """What is heard of this machine as spark1: it has neither rails nor a cluster. And what Ansible printed."""
    folder = tmp_path_factory.mktemp("asked")
    given = {"ansible_connection": "local", "ansible_become": False, "profile": PROFILE, "fabric": OUTER,
             "example": False, "ansible_python_interpreter": sys.executable, "roce_fabric_sysfs_root": str(folder),
             "doctor_roles": ["roce_fabric", "multus", "model_serving"]}  # fmt: skip
    target = folder / "heard.json"
    env = {**os.environ, "HOME": str(folder), "SPARKLOOM_DOCTOR_JSON": str(target), "ANSIBLE_NOCOLOR": "1"}
    program = str(Path(sys.executable).with_name("ansible-playbook"))
    command = [program, "-i", "inventories/gb10", "-l", "spark1", "playbooks/doctor.yml", "-e", json.dumps(given)]
    done = subprocess.run(command, cwd=REPO, env=env, capture_output=True, text=True, timeout=300, check=False)
    assert target.exists(), done.stdout + done.stderr
    return json.loads(target.read_text())["events"], done.stdout


def of(heard: tuple[list[dict[str, Any]], str], role: str) -> list[dict[str, Any]]:
    return [event for event in heard[0] if event["role"] == role]


@pytest.mark.parametrize("role", ["model_serving", "multus"])
def test_a_cluster_that_is_not_there_is_said_of_each_area_once(
    heard: tuple[list[dict[str, Any]], str], role: str
) -> None:
    (event,) = [event for event in of(heard, role) if event["host"] == "cluster" and event["area"] != "weights"]
    assert event["outcome"] == "failed" and "no such kubeconfig" in str(event["result"])


def test_the_rails_are_read_back(heard: tuple[list[dict[str, Any]], str]) -> None:
    told = str(of(heard, "roce_fabric"))
    assert "no enp1s0f1v1, on the host or in a pod" in told


def test_a_node_without_a_store_is_told_of(heard: tuple[list[dict[str, Any]], str]) -> None:
    (event,) = [event for event in of(heard, "model_serving") if event["area"] == "weights"]
    assert event["outcome"] == "failed" and "spark1" in str(event["result"])


def test_ansible_runs_eight_tasks_whatever_is_asked(heard: tuple[list[dict[str, Any]], str]) -> None:
    """On the old code a hundred and four, each with a process of its own for each node."""
    tasks = [line for line in heard[1].splitlines() if line.startswith("TASK [") and "Validating" not in line]
    assert [line.partition(" : ")[2].partition("]")[0] for line in tasks] == [
        "Ask whose box each address leads to", "Compare the host key at each address with the record",
        "Connect to these machines only", "Ask each machine which one it is",
        "Compare that with the record, and record what is new",
        "Plan what is asked", "Ask every machine", "Judge that and the cluster",
    ]  # fmt: skip


def test_of_a_list_each_group_is_asked_where_it_stands(tmp_path: Path) -> None:
    """Its weights on its own Sparks, under its own name; and one alone, when somebody says so."""
    pair = "{profile: radixark--qwen3.8-27b-nvfp4--2node, name: pair, nodes: [spark3, spark1]}"
    site = inventories.serving(
        tmp_path, f"serve: [{pair}, {{profile: openai--gpt-oss-120b, name: oss, nodes: [spark2]}}]\n"
    )
    (event,) = [event for event in of_a_list(site) if event["area"] == "weights"]
    assert (event["group"], event["outcome"]) == ("pair", "failed") and "spark1" in str(event["result"]["rows"])
    assert not [event for event in of_a_list(site, "-e", "doctor_group=oss") if event["area"] == "weights"]


def of_a_list(site: Path, *more: str) -> list[dict[str, Any]]:
    given = {"ansible_connection": "local", "ansible_become": False, "ansible_python_interpreter": sys.executable,
             "doctor_roles": ["model_serving"]}  # fmt: skip
    target = site.parent / "heard.json"
    env = {**os.environ, "HOME": str(site.parent), "SPARKLOOM_DOCTOR_JSON": str(target), "ANSIBLE_NOCOLOR": "1"}
    program = str(Path(sys.executable).with_name("ansible-playbook"))
    command = [program, "-i", str(site), "-l", "spark1", "playbooks/doctor.yml", "-e", json.dumps(given), *more]
    done = subprocess.run(command, cwd=REPO, env=env, capture_output=True, text=True, timeout=300, check=False)
    assert target.exists(), done.stdout + done.stderr
    return list(json.loads(target.read_text())["events"])


def test_what_is_asked_here_is_dry_in_a_play_that_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another's play may name the role without check_mode: nothing is made for it, no key and no certificate."""
    made: list[bool] = []

    def perform(context: Context, do: str, args: Any) -> dict[str, Any]:
        made.append(context.dry)
        return {"changed": do == "gateway.prepare"}

    monkeypatch.setattr(executor, "perform", perform)
    assert asking.Asking(context(), {}).run("gateway.prepare", {}) == {"changed": True} and made == [True]
