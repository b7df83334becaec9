"""A step runs once, tells how long it should take, and is run again when it failed."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.rack import names, steps, store


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(names, "CACHE", tmp_path)
    monkeypatch.setattr(steps, "TIMES", tmp_path / "times.json")


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


def test_failed_step_is_not_done_and_has_no_time() -> None:
    log: list[str] = []
    with pytest.raises(RuntimeError):
        steps.perform([make(log, ["one"], fail=True)])
    assert steps.expected("demo") is None
    steps.perform([make(log, ["one"])])
    assert log == ["built", "built"]
    assert steps.expected("demo") is not None


def test_shows_what_it_does_and_the_last_time(capsys: pytest.CaptureFixture[str]) -> None:
    steps.record("demo", 75)
    steps.perform([make([], ["one"])])
    shown = capsys.readouterr().err
    assert "[1/1] demo  builds a demo (took 1 min 15 s last time)" in shown
    assert "at it" in shown


def test_line_counts_down_to_the_expected_time(monkeypatch: pytest.MonkeyPatch) -> None:
    progress = steps.Progress("[1/1] demo", expected=100.0)
    monkeypatch.setattr(steps.time, "monotonic", lambda: progress.start + 40)
    assert "40 s, about 1 min 00 s left" in progress.line()


@pytest.mark.parametrize(("seconds", "text"), [(0.04, "0.0 s"), (9.94, "9.9 s"), (59.4, "59 s"), (60, "1 min 00 s")])
def test_duration(seconds: float, text: str) -> None:
    assert steps.duration(seconds) == text
