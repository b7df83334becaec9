"""What a run's workers share, and do not load anew for each task of each host."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.places import REPO

FILTERS = """
import os, pathlib

with pathlib.Path(__file__).with_suffix(".loads").open("a") as loads:
    loads.write(f"{os.getpid()}\\n")

class FilterModule:
    def filters(self):
        return {"twice": lambda text: text * 2}
"""
PLAY = """
- hosts: all
  connection: local
  gather_facts: false
  tasks:
    - ansible.builtin.debug: {msg: "{{ 'one' | twice }}"}
    - ansible.builtin.debug: {msg: "{{ nothing | default('two') }}"}
      when: nothing is not defined
"""


def test_filters_are_loaded_once_in_a_run_a_users_own_among_them(tmp_path: Path) -> None:
    """Red before: four loads, by each task of each host."""
    (tmp_path / "filter_plugins").mkdir()
    (tmp_path / "filter_plugins/mine.py").write_text(FILTERS)
    (tmp_path / "play.yml").write_text(PLAY)
    words = [str(Path(sys.executable).with_name("ansible-playbook")), "-i", "a,b,", str(tmp_path / "play.yml")]
    done = subprocess.run(words, cwd=REPO, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "oneone" in done.stdout and "two" in done.stdout
    assert len((tmp_path / "filter_plugins/mine.loads").read_text().split()) == 1
