"""Our modules run on a node without Ansible's library, and neither they nor whoever calls them can tell."""

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

from sparkloom.onnode import lean_module
from sparkloom.render import pack
from sparkloom.site import node_module
from sparkloom.site.ansible import specification
from tests.places import REPO
from tests.plugins.loading import module

PLUGINS = REPO / "plugins"
MODULES = sorted(path.stem for path in (PLUGINS / "modules").glob("sparkloom_*.py"))


class Asked(Exception):
    pass


@pytest.mark.parametrize("name", MODULES)
def test_what_is_documented_is_what_the_module_takes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The controller judges the arguments by the one, Ansible's own way by the other."""
    loaded = module(name)

    def kept(argument_spec: dict[str, Any], supports_check_mode: bool) -> None:
        raise Asked(argument_spec, supports_check_mode)

    monkeypatch.setattr(loaded, "AnsibleModule", kept)
    with pytest.raises(Asked) as told:
        loaded.main()
    spec, dry = told.value.args
    assert plainly(spec) == plainly(specification(node_module.documentation(PLUGINS / f"modules/{name}.py"))) and dry


def plainly(spec: dict[str, Any]) -> dict[str, Any]:
    """Without what only hides a value, and with what Ansible takes for granted."""
    kept = {}
    for name, entry in spec.items():
        inner = {key: value for key, value in entry.items() if key != "no_log" and (key, value) != ("required", False)}
        inner["type"] = inner.get("type", "str")
        if "options" in inner:
            inner["options"] = plainly(inner["options"])
        kept[name] = inner
    return kept


PLAY = """
- hosts: all
  gather_facts: false
  tasks:
    - name: Write
      sparkloom_files:
        files:
          - {{path: {folder}/a, content: "one\\n"}}
          - {{path: {folder}/b, content: dHdvCg==, encoding: base64, mode: "0600"}}
      register: written
    - name: Write once more
      sparkloom_files:
        files: [{{path: {folder}/a, content: "one\\n"}}]
      register: again
    - name: Dry
      sparkloom_files:
        files: [{{path: {folder}/a, content: "other\\n"}}]
      check_mode: true
      diff: true
      register: dry
    - name: Wrong
      sparkloom_files:
        files: [{{path: {folder}/a, made: up}}]
      register: wrong
      ignore_errors: true
    - name: Refused
      sparkloom_files:
        files: [{{path: {folder}/a/b, content: x}}]
      register: refused
      ignore_errors: true
    - name: Somebody else's
      ansible.builtin.ping:
      register: other
    - name: Say
      ansible.builtin.copy:
        content: "{{{{ [written, again, dry, wrong, refused, other] | to_json }}}}"
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


def test_both_ways_say_and_do_the_same(tmp_path: Path) -> None:
    lean, whole = (told(tmp_path / str(pipelining), pipelining=pipelining) for pipelining in (True, False))
    for folder in ("True", "False"):
        assert (tmp_path / folder / "a").read_text() == "one\n" and (
            tmp_path / folder / "b"
        ).stat().st_mode & 0o777 == 0o600
    for mine, theirs in zip(lean, whole, strict=True):
        assert mine.get("changed") == theirs.get("changed") and mine.get("failed", False) == theirs.get("failed", False)
        same = json.dumps(mine.get("diff")).replace("/True/", "/False/") == json.dumps(theirs.get("diff"))
        assert same, (mine, theirs)
    written, again, dry, wrong, refused, other = lean
    assert written["changed"] and not again["changed"] and dry["changed"]
    assert "made" in wrong["msg"] and "made" in whole[3]["msg"]
    assert "NotADirectoryError" in refused["msg"]
    assert other["ping"] == "pong"


def test_a_node_without_an_answer_is_quoted() -> None:
    ran = {"rc": 127, "stdout": "", "stderr": "sh: 1: exec: python3: not found\n"}
    said = node_module.answer("sparkloom_units", ran)
    assert said["failed"] and said["msg"].endswith("it said: sh: 1: exec: python3: not found")


def test_what_a_login_script_says_is_no_answer() -> None:
    ran = {"rc": 0, "stdout": 'Welcome!\n{"changed": true}\n\n', "stderr": "", "stdout_lines": []}
    assert node_module.answer("sparkloom_units", ran) == {"changed": True}


@pytest.mark.parametrize(
    ("given", "found", "meant"),
    [
        ("auto_silent", "/usr/bin/python3.12", "/usr/bin/python3.12"),
        (None, None, "python3"),
        ("/opt/p y", None, "'/opt/p y'"),
    ],
)
def test_the_interpreter(given: str | None, found: str | None, meant: str) -> None:
    action = SimpleNamespace(_templar=SimpleNamespace(template=lambda value: value))
    facts = {"discovered_interpreter_python": found} if found else {}
    task_vars = {"ansible_facts": facts} | ({"ansible_python_interpreter": given} if given else {})
    assert node_module.interpreter(action, task_vars) == meant


def test_a_command_that_fails_is_told_as_ansible_tells_it(capsys: pytest.CaptureFixture[str]) -> None:
    lean_module.AnsibleModule.given = {"params": {"b": 1}, "check_mode": False}
    tool = lean_module.AnsibleModule({"a": {}, "b": {}}, supports_check_mode=True)
    assert tool.params == {"a": None, "b": 1}
    assert tool.run_command(["sh", "-c", "echo a; echo b >&2; exit 3"]) == (3, "a\n", "b\n")
    for argv, said in ((["sh", "-c", "echo why >&2; exit 3"], "why"), (["/no/such"], "No such file")):
        with pytest.raises(SystemExit) as ended:
            tool.run_command(argv, check_rc=True)
        assert ended.value.code == 1
        last = json.loads(capsys.readouterr().out)
        assert last["failed"] and said in last["msg"]


def test_an_archive_holds_what_its_module_imports_and_no_more() -> None:
    """Nothing of Ansible's own: what asks a web server by Ansible's means goes with its library."""
    packed = {name: pack.module(PLUGINS / f"modules/{name}.py", PLUGINS / "module_utils") for name in MODULES}
    assert [name for name, program in packed.items() if program is None] == ["sparkloom_k3s_programs"]
    for program in filter(None, packed.values()):
        names = zipfile.ZipFile(io.BytesIO(program.archive)).namelist()
        known = ("ansible/__init__.py", "ansible/module_utils/__init__.py", "ansible/module_utils/basic.py")
        assert all(name in known or "sparkloom" in name or name == "__main__.py" for name in names), names


def asked_together(steps: list[dict[str, Any]], folder: Path, **more: Any) -> dict[str, Any]:
    """As a node runs the archive of several modules: by its own Python, apart from everything of ours."""
    used = tuple(sorted({PLUGINS / f"modules/{step['module']}.py" for step in steps if "module" in step}))
    packed = pack.modules(used, PLUGINS / "module_utils")
    assert packed
    (folder / "asked.pyz").write_bytes(packed.archive)
    given = json.dumps({"steps": steps, "check_mode": True, **more})
    command = ["/usr/bin/python3", "-I", folder / "asked.pyz"]
    done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=60, check=True)
    return dict(json.loads(done.stdout))


def test_several_modules_answer_in_one_run_each_as_by_itself(tmp_path: Path) -> None:
    """On the old code each is a connection and an interpreter of its own."""
    known = {"secrets": {}, "remember": False, "state": "present", "restore": False, "modes": {}}
    file = {"path": str(tmp_path / "a"), "content": "one\n", "mode": "0644"}
    said = asked_together(
        [
            {"module": "sparkloom_files", "params": known | {"files": [file]}},
            {"argv": ["sh", "-c", "echo changed: x"]},
            {"module": "sparkloom_files", "params": {"files": 7}},  # breaks
            {"argv": ["sh", "-c", "echo why >&2; exit 3"]},
            {"argv": ["/no/such"]},
            {"module": "sparkloom_files", "params": known | {"files": [file]}},
        ],
        tmp_path,
    )
    written, printed, broken, refused, absent, again = said["answers"]
    assert written["changed"] and written["diff"] and written == again and not (tmp_path / "a").exists()
    assert printed["changed"] and printed["stdout_lines"] == ["changed: x"]
    assert broken["failed"] and broken["exception"] and refused["rc"] == 3 and refused["msg"] == "why"
    assert absent["failed"] and "No such file" in absent["msg"]
    assert len(said["ago"]) == 6 and said["ago"] == sorted(said["ago"], reverse=True)


def test_whoever_needs_more_of_ansible_is_no_part_of_a_run_for_several() -> None:
    paths = tuple(PLUGINS / f"modules/{name}.py" for name in ("sparkloom_files", "sparkloom_k3s_programs"))
    assert pack.modules(paths, PLUGINS / "module_utils") is None
