"""What a node does is one program, run from memory: answers, refusals and dry runs as Ansible tells its own."""

from __future__ import annotations

import io
import json
import os
import subprocess
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sparkloom.onnode.task import Ended, Task
from sparkloom.render import pack
from sparkloom.site import executor
from sparkloom.site.ansible import Context
from tests.places import REPO

PLAY = """
- hosts: all
  gather_facts: false
  tasks:
    - name: Write
      sparkloom_node:
        do: files
        files:
          - {{path: {folder}/a, content: "one\\n"}}
          - {{path: {folder}/b, content: dHdvCg==, encoding: base64, mode: "0600"}}
      register: written
    - name: Write once more
      sparkloom_node:
        do: files
        files: [{{path: {folder}/a, content: "one\\n"}}]
      register: again
    - name: Dry
      sparkloom_node:
        do: files
        files: [{{path: {folder}/a, content: "other\\n"}}]
      check_mode: true
      diff: true
      register: dry
    - name: Wrong
      sparkloom_node:
        do: files
        files: [{{path: {folder}/a, made: up}}]
      register: wrong
      ignore_errors: true
    - name: Refused
      sparkloom_node:
        do: files
        files: [{{path: {folder}/a/b, content: x}}]
      register: refused
      ignore_errors: true
    - name: Again and again
      sparkloom_node: {{do: memory}}
      until: tried is changed
      retries: 1
      delay: 0
      register: tried
      ignore_errors: true
    - name: Somebody else's
      ansible.builtin.ping:
      register: other
    - name: Say
      ansible.builtin.copy:
        content: "{{{{ [written, again, dry, wrong, refused, other, tried] | to_json }}}}"
        dest: {folder}/told
"""


def told(folder: Path, *, pipelining: bool) -> list[dict[str, Any]]:
    folder.mkdir()
    (folder / "play.yml").write_text(PLAY.format(folder=folder))
    (folder / "hosts").write_text("node ansible_connection=local ansible_python_interpreter=/usr/bin/python3\n")
    environment = {**os.environ, "ANSIBLE_PIPELINING": str(pipelining), "ANSIBLE_STDOUT_CALLBACK": "default"}
    command = [REPO / ".venv/bin/ansible-playbook", "-i", folder / "hosts", folder / "play.yml"]
    done = subprocess.run(command, cwd=REPO, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return list(json.loads((folder / "told").read_text()))


def test_with_pipelining_and_without_the_same_is_said_and_done(tmp_path: Path) -> None:
    lean, whole = (told(tmp_path / str(pipelining), pipelining=pipelining) for pipelining in (True, False))
    for folder in ("True", "False"):
        assert (tmp_path / folder / "a").read_text() == "one\n" and (
            tmp_path / folder / "b"
        ).stat().st_mode & 0o777 == 0o600
    for mine, theirs in zip(lean, whole, strict=True):
        assert mine.get("changed") == theirs.get("changed") and mine.get("failed", False) == theirs.get("failed", False)
        same = json.dumps(mine.get("diff")).replace("/True/", "/False/") == json.dumps(theirs.get("diff"))
        assert same, (mine, theirs)
    written, again, dry, wrong, refused, other, tried = lean
    assert written["changed"] and not again["changed"] and dry["changed"]
    assert "made" in wrong["msg"] and "made" in whole[3]["msg"]
    assert "NotADirectoryError" in refused["msg"]
    assert other["ping"] == "pong"
    assert tried["attempts"] == 1 and tried["memory"]["total_gib"] > 0, "asked twice, each time with all that it said"


def test_a_node_without_an_answer_is_quoted() -> None:
    ran = {"rc": 127, "stdout": "", "stderr": "sh: 1: exec: python3: not found\n"}
    said = executor.answer(ran)
    assert said["failed"] and said["msg"].endswith("it said: sh: 1: exec: python3: not found")


def test_what_a_login_script_says_is_no_answer() -> None:
    ran = {"rc": 0, "stdout": 'Welcome!\n{"changed": true}\n\n', "stderr": "", "stdout_lines": []}
    assert executor.answer(ran) == {"changed": True}


@pytest.mark.parametrize(
    ("given", "found", "meant"),
    [
        ("auto_silent", "/usr/bin/python3.12", "/usr/bin/python3.12"),
        (None, None, "python3"),
        ("/opt/p y", None, "'/opt/p y'"),
    ],
)
def test_the_interpreter(given: str | None, found: str | None, meant: str) -> None:
    task = SimpleNamespace(delegate_to=None)
    action = SimpleNamespace(_templar=SimpleNamespace(template=lambda value: value), _task=task)
    facts = {"discovered_interpreter_python": found} if found else {}
    task_vars = {"ansible_facts": facts} | ({"ansible_python_interpreter": given} if given else {})
    assert Context(action, task_vars, dry=False).interpreter == meant
    task.delegate_to = "other"
    there = Context(action, {"ansible_delegated_vars": {"other": task_vars}}, dry=False)
    assert there.interpreter == meant, "of the machine that it is delegated to"


def test_a_command_that_fails_is_told_as_ansible_tells_it() -> None:
    tool = Task({"b": 1}, check_mode=False)
    assert tool.run_command(["sh", "-c", "echo a; echo b >&2; exit 3"]) == (3, "a\n", "b\n")
    for argv, said in ((["sh", "-c", "echo why >&2; exit 3"], "why"), (["/no/such"], "No such file")):
        with pytest.raises(Ended) as ended:
            tool.run_command(argv, check_rc=True)
        assert ended.value.result["failed"] and said in ended.value.result["msg"]


def test_one_program_holds_all_that_nodes_do_and_nothing_of_ansible() -> None:
    names = zipfile.ZipFile(io.BytesIO(pack.program("tasks").archive)).namelist()
    assert {f"sparkloom/onnode/tasks/{name}.py" for name in pack.TASKS} <= set(names)
    assert all(name == "__main__.py" or name.startswith("sparkloom/") for name in names), names
    assert len(pack.program("tasks").archive) < 100_000, "it travels with each task"


def asked_together(steps: list[dict[str, Any]], folder: Path) -> dict[str, Any]:
    """As a node runs them: by its own Python, apart from everything of ours."""
    program = pack.program("tasks").keep(folder)
    given = json.dumps({"steps": steps, "check_mode": True})
    command = ["/usr/bin/python3", "-I", program]
    done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=300, check=True)
    return dict(json.loads(done.stdout))


def test_several_tasks_answer_in_one_run_each_as_by_itself(tmp_path: Path) -> None:
    """On the old code each is a connection and an interpreter of its own."""
    file = {"path": str(tmp_path / "a"), "content": "one\n", "mode": "0644"}
    said = asked_together(
        [
            {"do": "files", "params": {"files": [file]}},
            {"argv": ["sh", "-c", "echo changed: x"]},
            {"do": "files", "params": {"files": 7}},  # breaks
            {"argv": ["sh", "-c", "echo why >&2; exit 3"]},
            {"argv": ["/no/such"]},
            {"do": "files", "params": {"files": [file]}},
        ],
        tmp_path,
    )
    written, printed, broken, refused, absent, again = said["answers"]
    assert written["changed"] and written["diff"] and written == again and not (tmp_path / "a").exists()
    assert printed["changed"] and printed["stdout_lines"] == ["changed: x"]
    assert broken["failed"] and broken["exception"] and refused["rc"] == 3 and refused["msg"] == "why"
    assert absent["failed"] and "No such file" in absent["msg"]
    assert len(said["ago"]) == 6 and said["ago"] == sorted(said["ago"], reverse=True)
