"""Runs playbooks/doctor.yml and judges what it saw: the command line's way to the same verdict."""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import IO

from sparkloom import case
from sparkloom.base.errors import InputError
from sparkloom.base.repository import REPO, WORK
from sparkloom.inputs.inventory import DEFAULT_INVENTORY, require_own
from sparkloom.site import play
from sparkloom.site.doctor.verdict import Report, report

TASK = re.compile(r"^TASK \[(?:[\w-]+ : )?(.*?)\] \*")
FAILURE = ("fatal: ", "ERROR", "[ERROR]")
KEPT_LINES = 8


def run(inventory: Path | None, extra: Iterable[str], say: Callable[[str], object]) -> Report:
    """The report; InputError when Ansible could not even begin."""
    cluster = case.cluster(inventory)
    require_own(cluster.example)
    nodes = [node.name for node in cluster.nodes]
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "events.json"
        tail = _play(inventory or DEFAULT_INVENTORY, list(extra), target, say)
        seen = json.loads(target.read_text()) if target.exists() else {"events": [], "hosts": []}
    asked = [node for node in nodes if node in seen["hosts"]]
    asked += [host for host in seen["hosts"] if host not in (*nodes, "localhost")]
    if not asked:
        words = " ".join(tail) or "nothing"
        raise InputError.single("playbooks/doctor.yml", f"ansible-playbook could not begin: {words}", rule="ansible")
    return report(seen["events"], asked, seen.get("groups", ()))


def _play(inventory: Path, extra: list[str], target: Path, say: Callable[[str], object]) -> list[str]:
    """One line for every task that begins; returns what to say in case that there is no report."""
    playbook = REPO / "playbooks" / "doctor.yml"
    command = play.command(playbook, inventory, [*extra, "--check", "--diff"])
    env = play.environment(SPARKLOOM_DOCTOR_JSON=str(target))
    with subprocess.Popen(
        command, cwd=WORK, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as process:
        assert process.stdout
        try:
            return _follow(process.stdout, say)
        except BaseException:
            process.terminate()
            raise


def _follow(lines: IO[str], say: Callable[[str], object]) -> list[str]:
    begun, tail, failure, failed = time.monotonic(), list[str](), list[str](), False
    for line in lines:
        failed = line.startswith(FAILURE) or (failed and line.startswith(" "))
        if failed:
            failure.append(line.strip())
        if (task := TASK.match(line)) and not task[1].startswith("Validating"):
            say(f"{time.monotonic() - begun:5.1f} s  {task[1]}\n")
        if line.strip():
            tail = [*tail, line.strip()][-KEPT_LINES:]
    return failure[:KEPT_LINES] or tail
