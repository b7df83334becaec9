"""The supervisor, its limits and the playbook's wait against durations as they really are (truths.yml)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sparkloom.inputs.catalogs import releases
from sparkloom.launch import engines, patience
from tests.slow_truth.world import FOREVER, TRUTHS, ULTRA, VLLM, Script, World

Make = Callable[..., World]
LOADS = {name: truth["seconds"] for name, truth in TRUTHS["loads"].items()}
COMPILE = TRUTHS["compiles"]["first-start"]["seconds"]
TOO_LOW, ILLEGAL = TRUTHS["crashes"]["too-low"], TRUTHS["crashes"]["illegal-instruction"]
FOUND_WITHIN = 120  # seconds after an engine's last progress


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    made: list[World] = []

    def world(*scripts: Script, name: str = ULTRA) -> World:
        made.append(World(tmp_path, monkeypatch, lambda start: scripts[min(start, len(scripts) - 1)], name))
        made[0].start()
        return made[0]

    yield world
    made[0].end()


def crash(truth: dict[str, Any], **more: Any) -> Script:
    return Script(crashes=truth["after"], words=truth["words"], **more)


def test_every_truth_says_where_it_is_known_from() -> None:
    for kind, truths in TRUTHS.items():
        for name, truth in truths.items():
            assert truth["source"], (kind, name)


# -- 11: restarts


def test_the_same_failure_after_each_load_ends_the_playbook_with_its_cause(make: Make) -> None:
    world = make(crash(TOO_LOW))
    outcome = world.wait()
    assert not outcome.ready and "mem-fraction-too-low" in outcome.message and "2 times in a row" in outcome.message
    assert 2 * TOO_LOW["after"] < outcome.seconds < 2 * TOO_LOW["after"] + 60
    assert world.starts == 2


def test_a_group_that_never_gives_a_token_stays_down_however_long_it_loads(make: Make) -> None:
    world = make(crash(TOO_LOW))
    world.until(lambda: world.log.status["phase"] == "down", 8 * TOO_LOW["after"])
    assert world.starts == world.order.limits.restarts + 1
    world.clock.sleep(3600)
    assert world.starts == world.order.limits.restarts + 1
    assert "6 times in a row without a token" in world.log.status["cause"]
    assert all(good for what, good in world.probed if what != "ready"), "staying down is no reason to be killed"


def test_failures_with_tokens_in_between_are_no_row(make: Make) -> None:
    world = make(crash(ILLEGAL | {"after": 1000}, opens=LOADS["ultra"]))
    world.until(lambda: world.starts == 9, 10 * 1100)
    assert world.log.status["phase"] != "down" and not any("again:" in line for line in world.lines)


def test_another_cause_is_another_failure(make: Make) -> None:
    world = make(crash(TOO_LOW), crash(ILLEGAL), Script(opens=LOADS["ultra"]))
    outcome = world.wait()
    assert outcome.ready and world.starts == 3


def test_a_small_model_that_falls_after_each_token_still_stays_down(make: Make) -> None:
    world = make(Script(opens=5, crashes=20, words="RuntimeError: boom"))
    world.until(lambda: world.log.status["phase"] == "down", 900)
    assert "6 times in 10 min" in world.log.status["cause"]


# -- 12: long starts


@pytest.mark.parametrize("name", LOADS)
def test_a_real_load_is_waited_for(make: Make, name: str) -> None:
    world = make(Script(opens=LOADS[name]))
    assert world.wait().ready and world.starts == 1


def test_a_first_start_that_compiles_for_36_minutes_is_waited_for(make: Make) -> None:
    begun = LOADS["ultra"]
    world = make(Script(opens=begun + COMPILE, compiles=(begun, begun + COMPILE)))
    outcome = world.wait()
    assert outcome.ready and world.starts == 1
    assert all(good for what, good in world.probed if what != "ready")
    assert any("compiling kernels, 1 compilers run" in line for line in world.lines)


def test_a_start_that_freezes_without_a_word_ends(make: Make) -> None:
    world = make(Script())
    world.until(lambda: world.starts == 2, world.order.limits.start + 60)
    assert any("failed: no token" in line for line in world.lines)


@pytest.mark.parametrize("engine", ["sglang", "vllm"])
def test_no_release_s_own_watchdog_is_shorter_than_a_first_compilation(engine: str) -> None:
    adapter = engines.get(engine)
    for release in releases.known(engine):
        catalog = engines.catalog(engine, release)
        told = {s.name: s.value for s in patience.settings(adapter, catalog)}
        told |= {v.name: int(v.value) for v in patience.environment(adapter, catalog)}
        wanted = {
            "sglang": {"watchdog_timeout", "dist_timeout", "SGLANG_WARMUP_TIMEOUT"},
            "vllm": {"VLLM_ENGINE_READY_TIMEOUT_S", "VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS"},
        }[engine]
        assert wanted <= set(told), release
        assert all(isinstance(value, int) and value > COMPILE for value in told.values()), release


# -- 13: a busy engine, and a dead one


@pytest.mark.parametrize("name", [ULTRA, VLLM])
@pytest.mark.parametrize("prefill", [truth["seconds"] for truth in TRUTHS["prefills"].values()])
def test_a_long_prefill_is_no_hang(make: Make, name: str, prefill: float) -> None:
    world = make(Script(opens=LOADS["super"], busy=(400, 400 + prefill)), name=name)
    assert world.wait().ready
    world.clock.sleep(400 + prefill + 300)
    assert world.starts == 1 and world.log.status["serving"]
    assert not any("quiet:" in line for line in world.lines), "it stays Ready: nobody else would take its requests"


def test_a_busy_engine_is_not_asked(make: Make) -> None:
    world = make(Script(opens=LOADS["super"], busy=(400, FOREVER)), name=VLLM)
    world.clock.sleep(450)
    before = world.questions
    world.clock.sleep(3600)
    assert world.questions == before and world.starts == 1


@pytest.mark.parametrize("name", [ULTRA, VLLM])
@pytest.mark.parametrize("hangs", [600, 611, 634])
def test_a_hang_with_requests_is_found_in_time(make: Make, name: str, hangs: float) -> None:
    world = make(Script(opens=LOADS["super"], busy=(400, FOREVER), hangs=hangs), name=name)
    world.until(lambda: world.starts == 2, 3600)
    assert world.began[1] - world.began[0] - hangs <= FOUND_WITHIN
    assert any("no progress for" in line for line in world.lines)


@pytest.mark.parametrize("hangs", [600, 617, 629])
def test_a_hang_of_an_idle_engine_is_found_in_time(make: Make, hangs: float) -> None:
    world = make(Script(opens=LOADS["super"], hangs=hangs), name=VLLM)
    world.until(lambda: world.starts == 2, 3600)
    assert world.began[1] - world.began[0] - hangs <= FOUND_WITHIN


def test_a_first_request_that_compiles_is_no_hang(make: Make) -> None:
    """No counter moves, no line is written: only its compilers tell."""
    seconds = TRUTHS["compiles"]["first-request"]["seconds"]
    script = Script(opens=LOADS["super"], busy=(400, 400 + seconds), hangs=400, compiles=(400, FOREVER))
    world = make(script, name=VLLM)
    world.clock.sleep(400 + seconds)
    assert world.starts == 1


def test_an_engine_without_counters_is_not_shot_while_clients_wait(make: Make) -> None:
    world = make(Script(opens=LOADS["super"], busy=(400, 400 + 505), counts=False), name=VLLM)
    world.clock.sleep(1500)
    assert world.starts == 1


# -- 15: memory between two loads


def test_memory_that_does_not_come_back_is_waited_for_and_its_holder_named(make: Make) -> None:
    gib = TRUTHS["leaks"]["sglang-crash"]["gib"]
    world = make(crash(TOO_LOW, leaks=gib), Script(opens=LOADS["ultra"]))
    world.until(lambda: any("memory:" in line for line in world.lines), 600)
    named = next(line for line in world.lines if "memory:" in line)
    assert "77.0 GiB available" in named and "are charged to no process" in named and "reboot the node" in named
    assert world.wait().message.endswith("reboot the node if it stays"), "83.7 GiB of weights do not fit any more"
    assert world.starts == 1
    world.available += gib
    world.until(lambda: world.starts == 2, 60)


def test_memory_that_comes_back_slowly_costs_only_the_wait(make: Make) -> None:
    world = make(crash(TOO_LOW, leaks=20), Script(opens=LOADS["ultra"]))
    world.until(lambda: any("memory:" in line for line in world.lines), 600)
    world.clock.sleep(60)
    assert world.starts == 1
    world.available += 20
    assert world.wait().ready and world.starts == 2


def test_a_load_is_tried_with_less_when_the_weights_still_fit(make: Make) -> None:
    world = make(crash(TOO_LOW, leaks=15), Script(opens=LOADS["ultra"]))
    assert world.wait().ready and world.starts == 2
    assert any("warning: memory: not all of it came back" in line for line in world.lines)
