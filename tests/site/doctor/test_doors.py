"""What the doctor asks a role for works by itself: no run of the role before it, none of its variables."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from sparkloom.site.doctor import verdict
from tests.places import REPO

TASKS = yaml.safe_load((REPO / "roles/doctor/tasks/main.yml").read_text())
PARTS = next(task["loop"] for task in TASKS if task["name"] == "Read back what a dry run cannot see")
PROFILE = "nvidia--nemotron-3-ultra-550b-a55b-nvfp4"


def play(folder: Path, **variables: str) -> list[dict[str, str]]:
    """What is heard of one file of a role, asked by the doctor on this machine: it has neither rails nor a cluster."""
    settings = {"ansible_connection": "local", "ansible_become": False, "profile": PROFILE, **variables}
    settings |= {"ansible_python_interpreter": sys.executable, "__doctor_serves": {"profile": PROFILE}}
    tasks = [{"ansible.builtin.include_tasks": str(REPO / "roles/doctor/tasks/role.yml")}]
    book = [{"hosts": "sparks", "check_mode": True, "tags": ["doctor"], "vars": settings, "tasks": tasks}]
    (folder / "play.yml").write_text(yaml.safe_dump(book))
    heard = folder / "heard.json"
    env = {**os.environ, "HOME": str(folder), "SPARKLOOM_DOCTOR_JSON": str(heard), "ANSIBLE_NOCOLOR": "1"}
    program = str(Path(sys.executable).with_name("ansible-playbook"))
    command = [program, "-i", "inventories/gb10", "-l", "spark1", str(folder / "play.yml")]
    done = subprocess.run(command, cwd=REPO, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return list(json.loads(heard.read_text())["events"])


def test_the_parts_are_files_of_the_role_and_areas_of_the_doctor() -> None:
    files = [part["file"] for part in PARTS if part["role"] == "model_serving"]
    assert files == ["cluster", "weights", "serving"] and set(files) <= set(verdict.AREAS)
    assert all((REPO / f"roles/{part['role']}/tasks/{part['file']}.yml").exists() for part in PARTS)


@pytest.mark.parametrize("part", ["cluster", "serving"])
def test_the_cluster_and_the_ranks_are_looked_at_without_a_dry_run_before(tmp_path: Path, part: str) -> None:
    (event,) = play(tmp_path, __doctor_role="model_serving", __doctor_file=part)
    assert (event["host"], event["role"], event["area"], event["outcome"]) == (
        "cluster", "model_serving", part, "failed",
    )  # fmt: skip
    assert "no such kubeconfig" in str(event["result"])


def test_the_rails_are_read_back_without_a_dry_run_before(tmp_path: Path) -> None:
    (event,) = play(
        tmp_path, __doctor_role="roce_fabric", __doctor_file="readback", roce_fabric_sysfs_root=str(tmp_path)
    )
    assert (event["role"], event["outcome"]) == ("roce_fabric", "failed")
    # Not VF 0: a rack beside this test has one of that name in its pods.
    assert "enp1s0f0v1, on the host or in a pod" in str(event["result"])
