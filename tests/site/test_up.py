"""`sparkloom up`: real runs of small playbooks through the real callback, and what is said of them."""

from __future__ import annotations

import io
import os
import re
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

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
WAITS = "ansible.builtin.command: {cmd: 'sleep 60'}"
AS_ROOT = f"{FINE}\n      become: true"
# Takes the words of the real one, and asks for the password as it does.
SUDO = """#!/bin/sh
while :; do case "$1" in -p) asks=$2; shift 2;; -u) shift 2;; -*) shift;; *) break;; esac; done
printf '%s' "$asks" >&2
read -r word
[ "$word" = geheim ] || { echo 'Sorry, try again.' >&2; exit 1; }
exec "$@"
"""
QUIET = "ansible.builtin.debug: {msg: nothing}"


def run(
    folder: Path,
    *actions: str,
    extra: tuple[str, ...] = (),
    password: str = "",
    look: Callable[[Progress], None] = lambda now: None,
) -> tuple[Progress, list[list[str]], Path]:
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

    def show(now: Progress) -> None:
        seen.append([part.state for part in now.parts])
        look(now)

    ended = up.run(folder / "hosts.yml", extra, log, show, folder / "site.yml", password)
    return ended, seen, log


def test_parts_are_told_as_they_come_and_what_fails_ends_it_with_its_words(tmp_path: Path) -> None:
    ended, seen, log = run(tmp_path, FINE, FAILS, FINE)
    assert not ended.good and [part.state for part in ended.parts] == ["changed", "failed", "waits"]
    assert ended.errors == [
        {"host": "spark1", "task": "Task of two", "said": "spark9 has no carrier; look at the cable"}
    ]
    assert ["waits", "waits", "waits"] in seen and seen[-1] == ["changed", "failed", "waits"]
    assert "PLAY RECAP" in log.read_text()
    said = upping.failure(ended, 12.0, log, "sparkloom up --limit spark9").splitlines()
    assert said[1:3] == ["cause: spark1: spark9 has no carrier", "fix:   look at the cable"]
    assert str(log) in said[-1] and said[-1].endswith(
        "mend it, then the same command again: sparkloom up --limit spark9"
    )
    assert len(said) < 8


def end_of(ended: Progress, log: Path) -> list[str]:
    terminal = Console(width=400, file=io.StringIO())
    upping._end(terminal, ended, 3.0, log, lambda: terminal.print("glm serves"))
    return [line for line in str(terminal.file.getvalue()).splitlines() if line]  # type: ignore[attr-defined]


def test_a_run_that_changes_nothing_says_so_in_one_line(tmp_path: Path) -> None:
    ended, _, log = run(tmp_path, QUIET)
    assert ended.good and end_of(ended, log) == ["glm serves", f"{log} has every line", "nothing changed (3 s)"]
    ended.serves = "glm serves at https://spark1/v1 (4 ranks)"
    assert end_of(ended, log) == [f"nothing changed (3 s); {ended.serves}"]
    ended.changes["spark1"] = 2
    assert end_of(ended, log)[-1] == f"done: 2 changes (spark1 2) in 3 s; {ended.serves}"


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


@pytest.mark.parametrize(("password", "state"), [("geheim", "changed"), ("falsch", "failed")])
def test_the_password_reaches_sudo_and_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, password: str, state: str
) -> None:
    """`-K` was Ansible's own question: the picture was painted over it, and the run seemed to hang (on the rack)."""
    monkeypatch.setenv("ANSIBLE_BECOME_ALLOW_SAME_USER", "1")
    sudo = tmp_path / "sudo"
    sudo.write_text(SUDO)
    sudo.chmod(0o755)
    ended, _, log = run(tmp_path, AS_ROOT, extra=("-e", f"ansible_become_exe={sudo}"), password=password)
    assert [part.state for part in ended.parts] == [state], log.read_text()
    kept = [path for path in tmp_path.rglob("*") if path.is_file() and path != sudo]
    assert not any(password in path.read_text(errors="replace") for path in kept)


@contextmanager
def handled(number: signal.Signals, handler: Any) -> Iterator[None]:
    """CI may have started us with a signal ignored."""
    before = signal.signal(number, handler)
    try:
        yield
    finally:
        signal.signal(number, before)


def interrupted(folder: Path, number: signal.Signals) -> tuple[Progress, list[list[str]], Path]:
    """A second into its second part."""
    timer = threading.Timer(1, os.kill, (os.getpid(), number))

    def look(now: Progress) -> None:
        if now.parts[1].state == "runs" and now.task == "Task of two" and timer.ident is None:
            timer.start()

    return run(folder, FINE, WAITS, FINE, look=look)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_run_ends_its_playbook_and_says_where_it_was(tmp_path: Path, number: signal.Signals) -> None:
    """Ctrl-C ended without a word, and a closed window left the playbook running."""
    with handled(number, signal.default_int_handler):
        ended, seen, log = interrupted(tmp_path, number)
        assert signal.getsignal(number) is signal.default_int_handler
    assert ended.interrupted == number and not ended.good
    assert seen[-1][-1] == "waits" and "failed" in seen[-1]
    assert "User interrupted execution" in log.read_text(), "Ansible ended by itself, not by a kill"
    said = upping.failure(ended, 6.0, log)
    assert "interrupted after 6 s in: Part " in said and "the same command goes on from there" in said


@pytest.mark.parametrize("lines", [22, 400])
def test_of_a_report_the_first_cause_and_its_fix_are_shown_and_what_else_there_is(lines: int) -> None:
    """A refused first evening was 110 lines of preflight in a window of 24: what to do first had scrolled away."""
    table = "19 checks on 4 nodes:\n" + "memory blocks  ok      ok      ok      FAIL\n" * lines
    more = "".join(f"FAIL  spark{n}  rail a: found nothing {'x' * 90}\n  -> a cable\n" for n in range(20))
    told = f"{table}warn  spark1  clock: odd\n  -> nothing\nFAIL  spark1  sudo: found no root\n  -> run with -K\n{more}"
    now = Progress([], errors=[{"host": "spark1", "task": "Judge", "said": told}], code=2)
    said = upping.failure(now, 1.0, Path("up.log")).splitlines()
    assert said[1:3] == ["cause: spark1  sudo: found no root", "fix:   run with -K"]
    assert said[3].startswith("also:  spark0 rail a: found nothing xx") and said[-3].strip() == "and 12 more"
    assert len(said) < 19 and max(map(len, said)) <= 80


@pytest.mark.parametrize("said", ["", " \n", "E: no such package\nE: and no other"])
def test_of_words_without_a_fix_the_first_are_the_cause(said: str) -> None:
    now = Progress([], errors=[{"host": "spark1", "task": "Install", "said": said}], code=2)
    told = upping.failure(now, 1.0, Path("up.log"))
    assert f"cause: spark1: {said.splitlines()[0] if said.strip() else 'said nothing'}" in told and "fix:" not in told
    assert ("also:  E: and no other" in told) == ("other" in said)


def test_what_a_task_says_while_it_works_is_shown_and_a_start_has_a_bar() -> None:
    """A pull of ten minutes showed its task's name alone."""
    now = Progress(up.parts(REPO / "site.yml"))
    now.take({"kind": "play", "tags": ["serve"], "at": time.time() - 90})
    now.take({"kind": "task", "name": "model_serving : Start", "does": "groups.start", "at": time.time() - 60})
    now.take({"kind": "said", "host": "spark1", "text": "rank 0 on spark1: engine  | loading " + "x" * 90, "at": 1.0})
    lines = drawn(upping.picture(now, 240.0), 80)
    assert max(map(len, lines)) <= 80
    assert any(line.startswith("  [####............]  1 min 0 s of at most 4 min 0 s") for line in lines), lines
    assert any(line.startswith("  rank 0 on spark1: engine") for line in lines)
    now.take({"kind": "end", "failed": ["spark1"], "at": 2.0, "measured": {"start glm": 90.0}})
    now.code = 2
    lines = drawn(upping.picture(now, 240.0), 80)
    assert len(lines) == 1 and "Serve" in lines[0] and now.measured == {"start glm": 90.0}


def drawn(picture: Any, columns: int) -> list[str]:
    terminal = Console(width=columns, force_terminal=True, color_system=None, file=io.StringIO())
    terminal.print(picture)
    return str(terminal.file.getvalue()).splitlines()  # type: ignore[attr-defined]


def test_what_ansible_refuses_before_its_first_task_is_said(tmp_path: Path) -> None:
    """Was `ended before its first task`, and the reason only in the log."""
    ended, _, log = run(tmp_path, FINE, extra=("--no-such-option",))
    said = upping.failure(ended, 1.0, log)
    assert not ended.good and "unrecognized arguments: --no-such-option" in said and said.count("\n") < 9


def test_in_a_pipe_each_part_is_a_line_when_it_begins_and_when_it_ends(tmp_path: Path) -> None:
    """A part of an hour (weights) was silent until it had ended."""
    ended, _, _ = run(tmp_path, FINE, FAILS, FINE)
    begins, told = Progress(up.parts(tmp_path / "site.yml")), set[str]()
    terminal = Console(file=io.StringIO(), width=200)
    begins.take({"kind": "play", "tags": ["one"], "at": 1.0})
    for progress in (begins, begins, ended, ended):
        upping._lines(terminal, progress, told)
    lines = str(terminal.file.getvalue()).splitlines()  # type: ignore[attr-defined]
    assert [line.split()[0] for line in lines] == ["runs", "changed", "failed"], lines
    assert lines[0].endswith("  Part one") and lines[1].endswith(" s  Part one (1 change)")


def test_warnings_are_told_once_each(tmp_path: Path) -> None:
    """They were in the log alone: a file that takes a kernel setting back at boot was not told to who uses `up`."""
    log = tmp_path / "up.log"
    sets = "[WARNING]: /etc/sysctl.d/99-mine.conf:1 sets net.ipv4.tcp_mtu_probing to 0\n"
    log.write_text(f"[WARNING]: Could not match supplied host pattern, ignoring: k3s_servers\n{sets}TASK [x]\n{sets}")
    assert upping._warnings(log) == ["/etc/sysctl.d/99-mine.conf:1 sets net.ipv4.tcp_mtu_probing to 0"]


def test_a_part_that_was_not_asked_for_is_skipped_and_not_fine() -> None:
    """With `--tags nodes`, "Make the cluster" was `ok` after 0.7 s: only its arguments were looked at (on the rack)."""
    now = Progress([up.Part("nodes", "Prepare"), up.Part("cluster", "Make"), up.Part("serve", "Serve")])
    spec = "k3s : Validating arguments against arg spec 'main' - A K3s cluster"
    for tag, task in (("nodes", "node_base : Keep kernel settings"), ("cluster", spec), ("serve", spec)):
        now.take({"kind": "play", "tags": [tag], "at": 1.0})
        now.take({"kind": "task", "name": task, "at": 1.0})
    now.take({"kind": "end", "failed": [], "at": 2.0})
    assert [part.state for part in now.parts] == ["ok", "skipped", "skipped"]


def test_the_parts_are_those_of_site_yml() -> None:
    parts = up.parts(REPO / "site.yml")
    assert [part.tag for part in parts][:3] == ["preflight", "nodes", "fabric"] and all(part.name for part in parts)


def test_without_a_site_of_one_s_own_it_asks_which(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """inventories/gb10 holds another's addresses: nothing is run there by default."""
    monkeypatch.setattr(repository, "WORK", tmp_path)
    for names, told in (((), "none is in inventories/ here"), (("attic", "cellar"), "there are attic, cellar")):
        for name in (*names, "gb10", "kind"):
            shutil.copytree(REPO / "inventories/gb10", tmp_path / "inventories" / name, dirs_exist_ok=True)
        for name in names:
            said = tmp_path / "inventories" / name / "group_vars/all/cluster.yml"
            said.write_text(re.sub(r"^example: .*\n", "", said.read_text(), flags=re.M))
        done = piped("up")
        assert done.code == 2 and told in done.errors


@pytest.mark.parametrize("columns", [40, 80])
def test_the_picture_fits_the_window_and_shows_what_runs(columns: int) -> None:
    now = Progress(up.parts(REPO / "site.yml"))
    longest = "model_serving : Wait for every rank, the longest of all the tasks that there are"
    for tag, task, at in (("preflight", "preflight : Judge", 1.0), ("nodes", longest, 5.0)):
        now.take({"kind": "play", "tags": [tag], "at": at})
        now.take({"kind": "task", "name": task, "at": at})
    lines = drawn(upping.picture(now), columns)
    assert max(map(len, lines)) <= columns and any("4 s" in line for line in lines)
    assert any("Wait for every rank" in line for line in lines)
    assert "model_serving" not in " ".join(lines), "where a task stands in the repository is nobody's concern here"
