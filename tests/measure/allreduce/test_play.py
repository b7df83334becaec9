"""playbooks/verify.yml -e fabric_check_between=pods asks the program, touches no node, and gives its verdict."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.places import REPO


def environment(folder: Path, program: str) -> Path:
    """The environment that runs these tests once more, with another `sparkloom` in it; its Python."""
    own = Path(sys.prefix)
    (folder / "bin").mkdir()
    (folder / "bin" / "python").symlink_to(own / "bin" / "python")
    (folder / "lib").symlink_to(own / "lib")
    shutil.copy(own / "pyvenv.cfg", folder)
    (folder / "bin" / "sparkloom").write_text(program)
    (folder / "bin" / "sparkloom").chmod(0o755)
    return folder / "bin" / "python"


OWN = '{"example": false}'  # as a copy of one's own is


def play(python: Path | str, *words: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "ANSIBLE_NOCOLOR": "1"}
    playbook = str(Path(sys.executable).with_name("ansible-playbook"))
    command = [
        str(python),
        playbook,
        "-i",
        "inventories/gb10",
        "playbooks/verify.yml",
        "-e",
        '{"example": false}',
        *words,
    ]
    return subprocess.run(command, cwd=REPO, env=env, capture_output=True, text=True, timeout=600, check=False)


@pytest.mark.parametrize(("code", "verdict"), [(0, "ok: 22.4 GB/s"), (1, "slow: 2.1 GB/s"), (2, "no such kubeconfig")])
def test_the_verdict_is_the_play_s(tmp_path: Path, code: int, verdict: str) -> None:
    """A stand-in for the program keeps what it was asked and answers as told."""
    program = f'#!/bin/sh\necho "$@" > {tmp_path}/asked\necho "{verdict}"\nexit {code}\n'
    done = play(environment(tmp_path, program), "-e", "fabric_check_between=pods")
    assert (done.returncode == 0) == (code == 0) and verdict in done.stdout, done.stdout + done.stderr
    asked = (tmp_path / "asked").read_text().split()
    assert asked[:2] == ["allreduce", "nvidia--nemotron-3-super-120b-a12b-nvfp4--ep4"] and asked[-3:] == [
        "1073741824",
        "--backend",
        "nccl",
    ]
