"""`kill -9` of a run: its workers end with it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from sparkloom.onnode.rank import procs
from tests.places import REPO
from tests.until import until

PLAY = """
- hosts: all
  connection: local
  gather_facts: false
  tasks:
    - name: Wait
      ansible.builtin.command: {argv: [sleep, "97"]}
      changed_when: false
"""


def test_no_worker_waits_for_what_a_killed_run_would_have_said(tmp_path: Path) -> None:
    """One stayed for 17 minutes: it was to write into a pipe that nobody read any more."""
    (tmp_path / "play.yml").write_text(PLAY)
    (tmp_path / "hosts.yml").write_text(f"all: {{hosts: {{a: {{ansible_python_interpreter: {sys.executable}}}}}}}\n")
    program = Path(sys.executable).with_name("ansible-playbook")
    words = [str(program), "-i", str(tmp_path / "hosts.yml"), str(tmp_path / "play.yml")]
    run = subprocess.Popen(words, cwd=REPO, env=dict(os.environ), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    mine: list[procs.Process] = []
    try:
        until(lambda: any("sleep 97" in one.title for one in procs.below(run.pid)), 60)
        mine = procs.below(run.pid)
        workers = [one for one in mine if one.parent == run.pid]
        assert workers
        run.kill()
        run.wait()
        until(lambda: not any(procs.same(one) for one in workers), 5)
    finally:
        run.kill()
        run.wait()
        for one in mine:  # what the task itself started here lives on
            if procs.same(one):
                procs.send(one.pid, signal.SIGKILL)
