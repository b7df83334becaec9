"""`sparkloom status --watch`: one screen in a window, a line each time in a pipe, an object a line as JSON."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from sparkloom.cli import watching
from sparkloom.site import now
from tests.cli.window import piped, seen
from tests.onnode.now import recorded
from tests.onnode.now.recorded import AT, OSS, Recorded


@pytest.fixture
def site(tmp_path: Path) -> Recorded:
    return Recorded(tmp_path)


def ends_after(site: Recorded, looks: int) -> Any:
    """The looks of a person who ends it with Ctrl-C."""
    clock = iter(range(10_000))

    def until(inventory: object) -> Iterator[dict[str, Any]]:
        gathers = site.gathers(lambda: AT + 5 * next(clock))
        with mock.patch.object(now, "gatherer", lambda inventory: gathers):
            shown = now_looks(inventory)
            for _ in range(looks):
                yield next(shown)
                site.made["glm"] += 500.0
        raise KeyboardInterrupt

    return mock.patch.object(now, "looks", until)


now_looks = now.looks
WATCH = ("status", "-w", "--every", "1")


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching.time, "sleep", lambda seconds: None)


def test_a_pipe_gets_a_line_each_time(site: Recorded) -> None:
    with ends_after(site, 3):
        done = piped(*WATCH)
    assert done.code == 0 and len(done.lines) == 3 and not done.errors
    assert done.lines[1] == "2026-11-25T04:00:05+00:00  fleet: 3 of 3 groups serve, 100 tok/s, 4 running, 1 waiting"


def test_json_is_an_object_a_line(site: Recorded) -> None:
    recorded.two_fail(site)
    with ends_after(site, 2):
        done = piped(*WATCH, "--json")
    first, second = (json.loads(line) for line in done.lines)
    assert done.code == 1 and first["format"] == 1 and second["at"] == first["at"] + 5
    assert [one["state"] for one in first["groups"]] == ["starts", "serves", "failed"]


def test_what_fails_is_in_the_line(site: Recorded) -> None:
    recorded.two_fail(site)
    with ends_after(site, 1):
        (line,) = piped(*WATCH).lines
    assert "fleet: 1 of 3 groups serves" in line and "; glm starts: rank 1 on spark2: epoch 4 ended" in line
    assert "; chat failed: rank 0 on spark4: its image" in line


def test_who_sleeps_is_no_trouble_and_who_wakes_says_how_far_it_is(site: Recorded) -> None:
    recorded.one_sleeps(site)
    site.route(0)
    with ends_after(site, 1):
        (line,) = piped(*WATCH).lines
    assert "fleet: 1 of 3 groups serves, 1 asleep" in line and "; glm wakes" in line and "chat" not in line
    with ends_after(site, 1):
        shown = seen(140, *WATCH)
    text = " ".join(shown.text.split())
    assert "chat asleep, wakes with the next request" in text and shown.code == 1
    assert "glm wakes engine: loading weights, shard 3 of 10, 38 s, 95 s of about 611 s, 2 waiting" in text
    assert "sleeps after 60 min without a request" in text
    site.demand("glm", 30, 0)
    with ends_after(site, 1):
        assert piped(*WATCH).code == 0, "all that is to serve does"


@pytest.mark.parametrize("columns", [80, 120])
def test_a_window_keeps_the_last_picture_and_each_line_of_it_fits(site: Recorded, columns: int) -> None:
    recorded.two_fail(site)
    with ends_after(site, 2):
        shown = seen(columns, *WATCH)
    last = shown.text.rpartition("1 of 3 groups serves")[2]
    assert shown.code == 1 and "Traceback" not in shown.text
    for word in ("spark1", "A0", "loading weights", "failed", "rail a", "94.9"):
        assert word in last, shown.text
    assert f"B {OSS}" in last and "epoch 4 of 5 ended" in last
    assert len(last.strip().splitlines()) <= 20


def test_a_cluster_that_goes_away_leaves_the_last_picture_and_says_so(site: Recorded) -> None:
    gathers = site.gathers()
    with mock.patch.object(now, "gatherer", lambda inventory: gathers):
        looks = now.looks(None)
        first = next(looks)
        site.away = "the cluster's API cannot be reached: timed out"
        second = next(looks)
    assert second == {**first, "problems": [site.away]}


def test_one_that_never_answered_is_a_picture_too(site: Recorded) -> None:
    site.away = "the cluster's API cannot be reached: timed out"
    with ends_after(site, 1):
        done = piped(*WATCH)
    assert done.code == 1 and "never seen" in done.text and site.away in done.text


def test_a_real_interrupt_ends_it(site: Recorded) -> None:
    """Not one that a test throws at a convenient place."""
    gathers = site.gathers()
    begun = time.monotonic()
    with mock.patch.object(now, "gatherer", lambda inventory: gathers):
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        done = piped(*WATCH)
    assert done.code == 0 and done.lines and time.monotonic() - begun < 20
