"""Steps on a terminal are a few lines that fit it; what others say reaches it spelled, and all of it is in the log."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from sparkloom.base import amount
from sparkloom.cli import streams
from sparkloom.site import endpoint
from testbed import __main__ as door
from testbed.base import machine, screen
from testbed.beds.rack import inventory
from testbed.face import after, demo, summary
from testbed.standins.hub import tiny
from tests.places import REPO

FOREIGN = "fine \x1b]0;mine\x07 \x1b[2J\x00 words"
RAW = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


class Window(io.StringIO):
    """A terminal of 80 columns, as its programs see it."""

    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        raise OSError


@pytest.fixture(autouse=True)
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SPARKLOOM_LOG", str(tmp_path / "all.log"))
    monkeypatch.setenv("TERM", "xterm")
    return tmp_path / "all.log"


def drawn(monkeypatch: pytest.MonkeyPatch, window: io.StringIO) -> str:
    """A step of two minutes that is at work while the screen is drawn, and another that has ended."""
    monkeypatch.setattr(sys, "stderr", streams.Visible(window))
    monkeypatch.setattr(screen, "QUIET_SECONDS", 0.01)
    with screen.Screen() as shown:
        progress = shown.begin("programs", 120.0)
        monkeypatch.setattr(progress, "start", progress.start - 40)
        progress.say(f"{FOREIGN} {'x' * 200}")
        shown.show(screen.row("rootfs", 86.0, "bootstraps a system with a title that is longer than any terminal " * 2))
        shown._stop.wait(1.2)
        shown.end(progress)
    return window.getvalue()


def test_no_line_is_wider_than_the_window_and_what_went_on_leaves_none(monkeypatch: pytest.MonkeyPatch) -> None:
    text = drawn(monkeypatch, Window())
    assert re.search(r"\[#####\.{11}\] 1 min (20|19) s left; fine", text)
    lines = text.replace(screen.ANEW, "\n").split("\n")
    assert all(len(line) < 80 for line in lines) and not RAW.search("".join(lines))
    # each line that is drawn anew is taken away before the next, and at the end
    assert text.endswith(screen.ANEW) and text.count("\n") == 1


def test_without_a_terminal_there_are_whole_lines_and_nothing_to_obey(monkeypatch: pytest.MonkeyPatch) -> None:
    text = drawn(monkeypatch, io.StringIO())
    assert not RAW.search(text) and "longer than any terminal bootstraps" in text
    assert "fine \\u001b]0;mine\\u0007" in text


def test_what_is_installed_is_told_before_it_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(machine, "_installed", lambda _: False)
    monkeypatch.setattr(machine, "run", lambda *_, **__: subprocess.CompletedProcess([], 0))
    with screen.Screen() as shown:
        machine.apt_install(["docker.io"], shown.begin("docker", None).say)
    assert "  docker: installs with apt-get: docker.io" in capsys.readouterr().err


def test_the_log_has_every_word(monkeypatch: pytest.MonkeyPatch, log: Path) -> None:
    drawn(monkeypatch, Window())
    kept = log.read_text()
    assert "x" * 200 in kept and "  rootfs      " in kept and not RAW.search(kept)


def test_a_step_says_when_it_takes_longer_than_usual_and_has_no_bar_where_nobody_knows() -> None:
    shown = screen.Screen()
    late, unknown, short = shown.begin("late", 30.0), shown.begin("unknown", None), shown.begin("short", 3.0)
    late.start -= 40
    assert f"[{'#' * amount.CELLS}] usually 30 s" in late.line()
    assert "[" not in unknown.line() + short.line()


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_nothing_that_a_command_prints_can_drive_a_terminal(
    stream: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Red before: an engine of random weights answered with control bytes, and `make demo` printed them."""
    loud = ModuleType("loud")
    loud.main = lambda: print(FOREIGN, file=getattr(sys, stream)) or 0  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "loud", loud)
    monkeypatch.setitem(door.COMMANDS, "loud", ("loud", "prints what others said"))
    monkeypatch.setattr(sys, "argv", ["testbed", "loud"])
    monkeypatch.setattr(sys, stream, getattr(sys, stream))
    assert door.main() == 0
    shown = getattr(capsys.readouterr(), "out" if stream == "stdout" else "err")
    assert "words" in shown and not RAW.search(shown), shown


def test_an_answer_takes_three_lines_at_most() -> None:
    lines = summary.quoted("One two three four. " * 60)
    assert len(lines) == 3 and all(len(line) <= 80 and line.startswith("  > ") for line in lines)
    assert lines[-1].endswith(" ...")


def test_what_to_type_next_fits_a_terminal_and_names_what_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = endpoint.Reach("https://172.18.0.2", tmp_path, tmp_path)
    monkeypatch.setattr(after.endpoint, "reach", lambda *_: where)
    text = after.text(inventory.KIND, demo.REAL, "SmolLM2-135M-Instruct")
    assert all(len(line) <= 80 for line in text.splitlines()), text
    assert len(text.splitlines()) <= 24
    (program,) = re.findall(r"-c '([^']+)'", text)
    compile(program, "openai", "exec")
    for command in re.findall(r"testbed (\w+)", text):
        assert command in door.COMMANDS
    assert (REPO / re.findall(r"playbooks/\w+\.yml", text)[0]).exists()
    assert (tiny.PROFILES / f"{demo.REAL}.yml").exists()
