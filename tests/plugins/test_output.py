"""What a person sees of a run: real runs of ansible-playbook with this repository's ansible.cfg."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from tests.places import REPO

CARETS = re.compile(r"^\s*\^|\[ERROR\]|^Origin:|Traceback|^<<<", re.M)
REFUSED = """
- name: Look
  ansible.builtin.fail:
    msg: |-
      spark9: found "x" in /etc/foo's, expected y
        -> write z
"""
# As the tasks answer that tell what serves; the last of them says something while it works.
ANSWERS = {
    "operation.hold": {"msg": "held"},
    "gateway.prove": {"url": "https://spark1/v1", "msg": "it streams"},
    "groups.finish": {
        "run": {"proved": {"glm": {"ranks": 2, "transport": "roce: every rank"}}, "asleep": [], "groups": []}
    },
}
ACTION = f"""
from ansible.plugins.action import ActionBase

class ActionModule(ActionBase):
    def run(self, tmp=None, task_vars=None):
        super().run(tmp, task_vars)
        self._display.display("it speaks")
        return {{"changed": False, **{ANSWERS}[self._task.args["do"]]}}
"""


def run(folder: Path, tasks: str, *words: str, **env: str) -> tuple[int, str]:
    """Two hosts of this machine; stdout and stderr as one text, as a terminal has them."""
    head = (
        "- name: Play\n  hosts: all\n  connection: local\n  gather_facts: false\n  any_errors_fatal: true\n  tasks:\n"
    )
    (folder / "play.yml").write_text(head + "".join(f"    {line}\n" for line in dedent(tasks).strip().splitlines()))
    hosts = "".join(f"    {name}: {{ansible_python_interpreter: {sys.executable}}}\n" for name in ("spark1", "spark2"))
    (folder / "hosts.yml").write_text(f"all:\n  hosts:\n{hosts}")
    plugins = folder / "actions"
    plugins.mkdir(exist_ok=True)
    (plugins / "sparkloom.py").write_text(ACTION)
    program = str(Path(sys.executable).with_name("ansible-playbook"))
    command = [program, "-i", str(folder / "hosts.yml"), *words, str(folder / "play.yml")]
    ours = {"ANSIBLE_NOCOLOR": "1", "ANSIBLE_ACTION_PLUGINS": str(plugins), "ANSIBLE_LIBRARY": str(folder), **env}
    done = subprocess.run(
        command, cwd=REPO, env={**os.environ, **ours}, text=True, timeout=120, check=False,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    return done.returncode, done.stdout


def last(said: str) -> str:
    return [line for line in said.splitlines() if line.strip()][-1]


def test_an_error_is_told_once_in_its_own_words(tmp_path: Path) -> None:
    """With Ansible's own output each host had it in YAML, after an [ERROR] with its place in a file and a caret."""
    code, said = run(tmp_path, REFUSED)
    assert code == 2 and not CARETS.search(said), said
    assert '    spark9: found "x" in /etc/foo\'s, expected y\n      -> write z\n' in said
    assert said.count("-> write z") == 1 and re.search(r"^fatal: \[spark.\]: FAILED! => as spark.$", said, re.M)
    assert "\\n" not in said and "msg:" not in said and "changed: false" not in said
    assert last(said).startswith("failed on spark1, spark2 at 'Look' after ")


HANDLED = """
- name: Start
  run_once: true
  block:
    - name: Serve
      ansible.builtin.include_tasks: serve.yml
  rescue:
    - name: Keep the words
      ansible.builtin.set_fact: {first: "{{ ansible_failed_result.msg }}"}
- name: Say what failed and what serves
  run_once: true
  ansible.builtin.fail:
    msg: |-
      glm did not start
      {{ first }}
      nothing is served now
"""


def test_what_a_role_handles_is_told_whole_by_the_role_alone(tmp_path: Path) -> None:
    (tmp_path / "serve.yml").write_text(
        "- name: Wait\n  ansible.builtin.fail:\n    msg: |-\n      rank 2 crashed\n      its log says why\n"
    )
    code, said = run(tmp_path, HANDLED)
    assert code == 2 and not CARETS.search(said), said
    assert "fatal: [spark1]: FAILED! => rank 2 crashed\n" in said and said.count("its log says why") == 1
    assert said.index("glm did not start") < said.index("its log says why") < said.index("nothing is served now")


@pytest.mark.parametrize(
    ("task", "words"),
    [
        ("crash:", "cable is gone"),
        ("ansible.builtin.command: {cmd: sh -c 'echo out of paper >&2; exit 3'}", "out of paper\n"),
        ("ansible.builtin.command: {argv: [/nowhere/there]}", "No such file"),
    ],
)
def test_a_program_s_failure_has_no_traceback(tmp_path: Path, task: str, words: str) -> None:
    (tmp_path / "crash.py").write_text(
        "from ansible.module_utils.basic import AnsibleModule\n\nAnsibleModule({})\n"
        "raise ValueError('the cable is gone')\n"
    )
    code, said = run(tmp_path, f"- name: Look\n  {task}", "-l", "spark1")
    assert code == 2 and not CARETS.search(said), said
    assert said.count(words) == 1, said


def test_who_wants_all_of_it_gets_it(tmp_path: Path) -> None:
    """-v, or an output of one's own: the last line is there as well."""
    for words, env in ((("-v",), {}), ((), {"ANSIBLE_STDOUT_CALLBACK": "ansible.builtin.default"})):
        code, said = run(tmp_path, REFUSED, *words, **env)
        assert code == 2 and "[ERROR]" in said and "changed: false" in said
        assert last(said).startswith("failed on spark1, spark2 at 'Look'")


SITE = """
- name: One operation at a time
  sparkloom: {do: operation.hold}
  run_once: true
- name: Keep a file
  ansible.builtin.command: {cmd: 'true'}
  changed_when: CHANGED
- name: Start what is missing
  sparkloom: {do: groups.finish}
  run_once: true
- name: Say how to use it
  ansible.builtin.debug: {msg: "curl -N \\"x\\"\\nand so on"}
  run_once: true
- name: Ask
  sparkloom: {do: gateway.prove}
  run_once: true
"""
SERVES = "glm serves at https://spark1/v1 (2 ranks, roce: every rank)"


@pytest.mark.parametrize(
    ("changed", "words", "expected"),
    [
        ("false", (), rf"nothing changed \(\d+ s\); {re.escape(SERVES)}"),
        ("inventory_hostname == 'spark2'", (), rf"done: 1 change \(spark2 1\) in \d+ s; {re.escape(SERVES)}"),
        ("true", ("--start-at-task", "Keep a file"), r"longest tasks:|  +\d.*"),
    ],
)
def test_the_last_line_says_what_changed_and_what_serves(
    tmp_path: Path, changed: str, words: tuple[str, ...], expected: str
) -> None:
    """On the old code a run ended with its five longest tasks. One without a part of ours still does."""
    code, said = run(tmp_path, SITE.replace("CHANGED", changed), *words)
    assert code == 0 and re.fullmatch(expected, last(said)), said
    assert said.index("PLAY RECAP") < said.index("longest tasks")
    assert 'curl -N "x"\n    and so on' in said, "a person's words are not YAML"
    assert said.index("TASK [Start what is missing]") < said.index("it speaks", said.index("TASK [Keep a file]"))


def test_a_dry_run_says_so(tmp_path: Path) -> None:
    tasks = "- sparkloom: {do: operation.hold}\n- name: Keep\n  ansible.builtin.debug: {msg: a}\n  changed_when: true"
    code, said = run(tmp_path, tasks, "--check")
    assert code == 0 and re.fullmatch(r"dry run: 2 changes \(spark1 1, spark2 1\) would be made \(\d+ s\)", last(said))


def test_every_action_that_speaks_while_it_works_gets_its_heading_first() -> None:
    source = (REPO / "plugins/callback/sparkloom_output.py").read_text()
    known = set(re.findall(r'"([\w.]+)"', source.partition("SPEAKS")[2].partition("}")[0]))
    tasks = (REPO / "scripts/sparkloom/site/tasks").glob("*.py")
    speaking = {path.stem for path in tasks if re.search(r"context\.say", path.read_text())}
    assert {name.partition(".")[0] for name in known} == speaking


def test_an_inventory_without_our_hosts_is_told_of(tmp_path: Path) -> None:
    """A misspelt -i: Ansible passes over every play and leaves with 0; on the old code the last line was blank."""
    (tmp_path / "play.yml").write_text("- hosts: sparks\n  tasks: []\n")
    done = subprocess.run(
        [Path(sys.executable).with_name("ansible-playbook"), "-i", tmp_path / "nowhere", tmp_path / "play.yml"],
        cwd=REPO, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert last(done.stdout).startswith(f"nothing was done: no host of {tmp_path / 'nowhere'} is in a group"), (
        done.stdout
    )
