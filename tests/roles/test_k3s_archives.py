"""The role's steps for archives of images, as a dry run on machines without K3s: refused, or who is brought what."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from pathlib import Path
from typing import Any

import pytest

from sparkloom.inputs import profile
from sparkloom.launch import resolve
from sparkloom.render.k3s import machines
from tests import image_archives as made
from tests.places import REPO

MACHINE = machines.ARCHITECTURES[platform.machine()]
MULTUS, GPU, ROUTER = (made.image(MACHINE, name) for name in (b"multus", b"gpu", b"router"))
PROFILE = "nvidia--minimax-m2.5-nvfp4--2node"
SAID = (
    "{{ inventory_hostname }} gets {{ __k3s_brought.brought[inventory_hostname] | map(attribute='file') "
    "| map('basename') | join(' ') }}"
)
LATER = "later: {{ __k3s_brought.brought | list | join(' ') }}"


def steps(hosts: str, said: str) -> dict[str, Any]:
    role = {"ansible.builtin.include_role": {"name": "k3s", "tasks_from": "images"}}
    return {"hosts": hosts, "gather_facts": False, "tasks": [role, {"ansible.builtin.debug": {"msg": said}}]}


PLAY = [steps("sparks", SAID), steps("spark1", LATER)]


def play(folder: Path) -> str:
    (folder / "play.yml").write_text(json.dumps(PLAY))
    given = {
        "ansible_connection": "local",
        "ansible_become": False,
        "example": False,
        "k3s_artifacts": str(folder),
        "profile": PROFILE,
        "multus_image": f"ghcr.io/org/multus:v4@{MULTUS.digest}",
        "gpu_runtime_image": f"nvcr.io/org/plugin:v0@{GPU.digest}",
        "gateway_router_image": f"docker.io/org/envoy:v1@{ROUTER.digest}",
    }
    env = {**os.environ, "PATH": f"{REPO}/.venv/bin:{os.environ['PATH']}", "ANSIBLE_NOCOLOR": "1"}
    done = subprocess.run(
        ["ansible-playbook", "-i", "inventories/gb10", str(folder / "play.yml"), "--check", "-e", json.dumps(given)],
        cwd=REPO, env={**env, "ANSIBLE_ROLES_PATH": str(REPO / "roles")}, capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    return done.stdout + done.stderr


@pytest.mark.skipif(Path("/run/k3s/containerd/containerd.sock").exists(), reason="a K3s runs here")
def test_the_run_is_refused_with_all_that_lies_in_no_archive_and_says_what_is_brought(tmp_path: Path) -> None:
    """Red before: nothing looked at images; the play went on to pods that waited in ImagePullBackOff."""
    engine = resolve.image_reference(profile.load(PROFILE))
    made.keep(tmp_path / "images/m.tar", made.layout(**{"ghcr.io/org/multus:v4": MULTUS}))
    told = play(tmp_path)
    assert "3 checks failed" in told and "nvcr.io/org/plugin:v0" in told and engine in told
    assert "gateway_router_image" in told, "every site has a router"
    assert f"in no archive of {tmp_path}/images (there: m.tar)" in told and "multus_image" not in told
    made.keep(
        tmp_path / "images/rest.tar.gz",
        made.of([(GPU, {}), (ROUTER, {}), (made.image(MACHINE), {made.NAME: f"docker.io/{engine}"})]),
    )
    told = play(tmp_path)
    for node, files in {"spark1": "m.tar rest.tar.gz", "spark4": "m.tar rest.tar.gz"}.items():
        assert f"{node} gets {files}" in told
    assert "later: spark1\n" in told.replace("'", "").replace('"', ""), "what others answered in an earlier play is old"
