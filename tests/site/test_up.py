"""`sparkloom up`: real runs of small playbooks through the real callback, and what is said of them."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest
from rich.console import Console

from sparkloom.base import repository
from sparkloom.cli import upping
from sparkloom.site import up
from sparkloom.site.up import Progress
from tests.cli.window import piped
from tests.places import REPO

PLAY = """
- name: {name}
  hosts: all
  connection: local
  tags: [{tag}]
  tasks:
    - name: {task}
      {action}
"""
FINE = "ansible.builtin.command: {cmd: 'true'}"
FAILS = "ansible.builtin.fail: {msg: 'spark9 has no carrier; look at the cable'}"
QUIET = "ansible.builtin.debug: {msg: nothing}"


def run(folder: Path, *actions: str) -> tuple[Progress, list[list[str]], Path]:
    """A site.yml of parts one, two, ... and the states that a watcher saw."""
    tags = ("one", "two", "three")[: len(actions)]
    entries = []
    for tag, action in zip(tags, actions, strict=True):
        (folder / f"{tag}.yml").write_text(PLAY.format(name=tag, tag=tag, task=f"Task of {tag}", action=action))
        entries.append(f"- name: Part {tag}\n  import_playbook: {tag}.yml\n  tags: [{tag}]\n")
    (folder / "site.yml").write_text("".join(entries))
    (folder / "hosts.yml").write_text(f"all: {{hosts: {{spark1: {{ansible_python_interpreter: {sys.executable}}}}}}}\n")
    seen: list[list[str]] = []
    log = folder / "build" / "up.log"
    ended = up.run(
        folder / "hosts.yml", [], log, lambda now: seen.append([p.state for p in now.parts]), folder / "site.yml"
    )
    return ended, seen, log


def test_parts_are_told_as_they_come_and_what_fails_ends_it_with_its_words(tmp_path: Path) -> None:
    ended, seen, log = run(tmp_path, FINE, FAILS, FINE)
    assert not ended.good and [part.state for part in ended.parts] == ["changed", "failed", "waits"]
    assert ended.errors == [
        {"host": "spark1", "task": "Task of two", "said": "spark9 has no carrier; look at the cable"}
    ]
    assert ["waits", "waits", "waits"] in seen and seen[-1] == ["changed", "failed", "waits"]
    assert "PLAY RECAP" in log.read_text()
    said = "\n".join(upping._end(ended, 12.0, log, lambda: "unasked"))
    assert "look at the cable" in said and str(log) in said and "the same command goes on" in said
    assert said.count("\n") < 8


def test_a_run_that_changes_nothing_says_so_in_one_line(tmp_path: Path) -> None:
    ended, _, log = run(tmp_path, QUIET)
    assert ended.good and list(upping._end(ended, 3.0, log, lambda: "glm serves")) == [
        "\nglm serves",
        f"{log} has every line",
        "\nnothing changed (3 s)",
    ]
    ended.serves = "glm serves at https://spark1/v1 (4 ranks)"
    assert list(upping._end(ended, 3.0, log, lambda: "unasked")) == [f"\nnothing changed (3 s); {ended.serves}"]
    ended.changes["spark1"] = 2
    *_, end = upping._end(ended, 3.0, log, lambda: "glm serves")
    assert end == f"\ndone: 2 changes (spark1 2) in 3 s; {ended.serves}"


def test_a_failure_that_a_role_tells_again_is_told_once() -> None:
    """On the old code `up` ended with the cause alone, and with it again in what the role said about it."""
    now = Progress(up.parts(REPO / "site.yml"))
    for task, said in (
        ("Wait", "rank 2 crashed"),
        ("Say what failed", "glm did not start\nrank 2 crashed\nnothing serves"),
    ):
        now.take({"kind": "failed", "at": 1.0, "host": "spark1", "task": task, "said": said})
    now.take({"kind": "failed", "at": 1.0, "host": "spark2", "task": "Wait", "said": "rank 2 crashed"})
    assert [error["task"] for error in now.errors] == ["Say what failed"]


def test_the_parts_are_those_of_site_yml() -> None:
    parts = up.parts(REPO / "site.yml")
    assert [part.tag for part in parts][:3] == ["preflight", "nodes", "fabric"] and all(part.name for part in parts)


def test_without_a_site_of_one_s_own_it_asks_which(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """inventories/gb10 holds another's addresses: nothing is run there by default."""
    monkeypatch.setattr(repository, "WORK", tmp_path)
    for names, told in (((), "none is in inventories/ here"), (("attic", "cellar"), "there are attic, cellar")):
        for name in (*names, "gb10"):
            (tmp_path / "inventories" / name).mkdir(parents=True, exist_ok=True)
            (tmp_path / "inventories" / name / "hosts.yml").touch()
        done = piped("up")
        assert done.code == 2 and told in done.errors


@pytest.mark.parametrize("columns", [40, 80])
def test_the_picture_fits_the_window_and_shows_what_runs(columns: int) -> None:
    now = Progress(up.parts(REPO / "site.yml"), task="Wait for every rank, the longest of all the tasks that there are")
    for event in ({"kind": "play", "tags": ["preflight"], "at": 1.0}, {"kind": "play", "tags": ["nodes"], "at": 5.0}):
        now.take(event)
    terminal = Console(width=columns, force_terminal=True, color_system=None, file=io.StringIO())
    terminal.print(upping.picture(now))
    lines = str(terminal.file.getvalue()).splitlines()  # type: ignore[attr-defined]
    assert max(map(len, lines)) <= columns and any("4 s" in line for line in lines)
    assert any("Wait for every rank" in line for line in lines)
