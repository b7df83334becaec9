"""A step runs once, tells how long it should take, and is run again when it failed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from testbed.base import names, screen, steps, store, times


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(names, "CACHE", tmp_path)
    monkeypatch.setattr(times, "FILE", tmp_path / "times.json")
    monkeypatch.setattr(times, "SHIPPED", tmp_path / "shipped.json")
    monkeypatch.setenv("SPARKLOOM_LOG", str(tmp_path / "all.log"))


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "all.log"


def make(log: list[str], inputs: list[store.Part], fail: bool = False) -> steps.Step:
    def build(work: Path, say: steps.Say) -> None:
        log.append("built")
        say("at it")
        if fail:
            raise RuntimeError("stopped")

    return steps.artefact("demo", "builds a demo", lambda: inputs, build)


def test_built_once_and_again_when_an_input_changes() -> None:
    log: list[str] = []
    steps.perform([make(log, ["one"])])
    steps.perform([make(log, ["one"])])
    assert log == ["built"]
    steps.perform([make(log, ["two"])])
    assert log == ["built", "built"]


def test_two_that_want_it_at_once_get_one_that_is_whole() -> None:
    """Red on a bare machine: two workers of a test run unpacked Debian's packages into one folder."""
    log: list[str] = []

    def build(work: Path, say: steps.Say) -> None:
        log.append("built")
        (work / "half").write_text("a")
        time.sleep(0.2)
        (work / "whole").write_text((work / "half").read_text())

    step = steps.artefact("demo", "builds a demo", lambda: ["one"], build)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda _: steps.quietly([step]), range(2)))
    assert log == ["built"] and step.done()


def test_failed_step_is_not_done_and_has_no_time() -> None:
    log: list[str] = []
    with pytest.raises(RuntimeError):
        steps.perform([make(log, ["one"], fail=True)])
    assert times.expected("demo") is None
    steps.perform([make(log, ["one"])])
    assert log == ["built", "built"]
    assert times.expected("demo") is not None


def test_what_it_does_and_what_it_is_at_are_kept_in_the_log(
    log: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A person sees one line of a step that took a while, and none of another."""
    times.record("demo", 75)
    steps.perform([make([], ["one"])])
    assert "demo begins: builds a demo (took 1 min 15 s last time)" in log.read_text()
    assert "demo: at it" in log.read_text() and capsys.readouterr().err == ""
    monkeypatch.setattr(steps, "LONG", 0.0)
    steps.perform([make([], ["two"])])
    assert capsys.readouterr().err.splitlines() == [screen.row("demo", 0.0, "builds a demo")]


def test_a_warm_run_does_not_shorten_what_a_cold_one_is_expected_to_take() -> None:
    times.record("demo", 350)
    times.record("demo", 4, warm=True)
    cold, warm = times.expected("demo"), times.expected("demo", warm=True)
    assert cold and warm and (cold.seconds, warm.seconds) == (350, 4)
    assert "| demo | 350.0 | 4.0 |" in times.table(["demo"])


def test_what_is_shipped_keeps_a_time_that_this_run_did_not_take() -> None:
    """Docker was there: its own time stays the one of a machine that had to install it."""
    store.write_json(times.SHIPPED, {"machine": {"cores": 2}, "steps": {"docker": {"cold": {"seconds": 4.9}}}})
    times.record("docker", 0.1, warm=True)
    times.record("kind", 35.0)
    times.ship(["docker", "kind"])
    steps = store.read_json(times.SHIPPED)["steps"]
    assert steps["docker"] == {"cold": {"seconds": 4.9}} and steps["kind"]["cold"]["seconds"] == 35.0


def test_a_first_run_is_told_the_shipped_time_until_it_has_its_own() -> None:
    store.write_json(times.SHIPPED, {"machine": {"cores": 2}, "steps": {"demo": {"cold": {"seconds": 90}}}})
    assert times.expected("demo") == times.Usual(90.0, "on 2 cores")
    assert times.expected("demo", warm=True) is None
    times.record("demo", 40)
    assert times.expected("demo") == times.Usual(40.0, "last time")


def test_a_slow_machine_is_told_its_own_pace() -> None:
    """Two slow cores were told another machine's 213 s for Kubernetes, which took them 524."""
    taken = {"one": 30.0, "two": 90.0}
    shipped = {name: {"cold": {"seconds": seconds}} for name, seconds in taken.items()}
    store.write_json(times.SHIPPED, {"machine": {"cores": 2}, "steps": shipped})
    times.record("one", 75)
    assert times.expected("two") == times.Usual(225.0, "by what this machine took until now")


def test_a_step_may_say_in_words_why_there_is_nothing_to_do(log: Path) -> None:
    def never(say: steps.Say) -> None:
        raise AssertionError

    assert steps.perform([steps.Step("demo", "builds", lambda: "not needed here", never)]) == {}
    assert "demo: not needed here" in log.read_text()


def test_every_step_that_was_passed_is_told_in_order() -> None:
    heard: list[str] = []
    listed = [steps.Step("one", "", lambda: True, lambda say: None), make([], ["x"])]
    steps.perform(listed, passed=lambda step: heard.append(step.name))
    assert heard == ["one", "demo"]


@pytest.mark.parametrize(("seconds", "text"), [(0.04, "0.0 s"), (9.94, "9.9 s"), (59.4, "59 s"), (60, "1 min 00 s")])
def test_duration(seconds: float, text: str) -> None:
    assert screen.duration(seconds) == text


class Waiting:
    """A step that goes on aside until it is let go."""

    def __init__(self, error: Exception | None = None) -> None:
        self.go, self.error = threading.Event(), error
        self.log: list[str] = []

    def act(self, say: steps.Say) -> None:
        assert self.go.wait(30)
        self.log.append("aside")
        if self.error:
            raise self.error

    def step(self, name: str, act: Callable[[], object], **more: Any) -> steps.Step:
        return steps.Step(name, "", lambda: False, lambda say: (act(), None)[1], **more)

    @property
    def aside(self) -> steps.Step:
        return steps.Step("aside", "", lambda: False, self.act, aside=True)


def test_the_next_steps_begin_while_one_goes_on_aside_and_who_needs_it_waits() -> None:
    """A node's system waits for a mirror with one processor while the compiler could have the other."""
    waiting = Waiting()
    heard: list[str] = []
    todo = [
        waiting.aside,
        waiting.step("next", lambda: (waiting.log.append("next"), waiting.go.set())),
        waiting.step("needs", lambda: waiting.log.append("needs"), after=("aside",)),
    ]
    spent = steps.perform(todo, passed=lambda step: heard.append(step.name))
    assert waiting.log == ["next", "aside", "needs"]
    assert heard == ["next", "aside", "needs"] and list(spent) == ["next", "aside", "needs"]
    assert times.expected("aside") is not None


def test_what_went_wrong_aside_ends_the_work_before_the_next_step() -> None:
    waiting = Waiting(error=RuntimeError("no mirror"))

    def let_go() -> None:
        waiting.go.set()
        while any(thread.name == "step aside" and thread.is_alive() for thread in threading.enumerate()):
            time.sleep(0.01)

    todo = [waiting.aside, waiting.step("next", let_go), waiting.step("never", lambda: waiting.log.append("never"))]
    with pytest.raises(RuntimeError, match="no mirror"):
        steps.perform(todo)
    assert waiting.log == ["aside"] and times.expected("aside") is None


def test_all_is_there_at_the_end_though_nobody_waited_for_it() -> None:
    waiting = Waiting()
    steps.perform([waiting.aside, waiting.step("next", waiting.go.set)])
    assert waiting.log == ["aside"]
