"""A group of ranks as processes: it serves, it stops with a cause, it comes back as one, or stays down."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sparkloom.render import pack
from tests import exposition
from tests.onnode.rank.ranks import Ranks, oldest_python


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Ranks]:
    ranks = Ranks(tmp_path, 2)
    yield ranks
    ranks.end()


@pytest.fixture
def four(tmp_path: Path) -> Iterator[Ranks]:
    ranks = Ranks(tmp_path, 4)
    yield ranks
    ranks.end()


def gone(pid: int) -> bool:
    try:
        return "Z" in Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return True


def strays(folder: Path) -> list[str]:
    """Processes that were started for this group and still live."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes() if entry.name.isdigit() else b""
            mine = str(folder).encode() in (entry / "environ").read_bytes() if words else False
        except OSError:
            continue
        if mine and int(entry.name) != os.getpid():
            found.append(words.replace(b"\0", b" ").decode(errors="replace"))
    return found


def test_four_ranks_serve_and_one_engine_s_death_restarts_them_all(four: Ranks) -> None:
    four.start()
    four.wait(four.serving)
    before = [four.status(n)["engine"] for n in range(4)]
    os.kill(before[2], signal.SIGKILL)
    four.wait(lambda: four.serving(epoch=2))
    after = [four.status(n)["engine"] for n in range(4)]
    assert not set(before) & set(after) and all(gone(pid) for pid in before)
    assert "rank 2 on spark3: the engine was ended by SIGKILL" in four.log(0)
    assert [four.status(n)["epoch"] for n in range(4)] == [2] * 4


def test_who_died_says_so_though_another_rank_was_faster_to_stop_the_group(four: Ranks) -> None:
    """The killed rank waited for a word to go; a scheduler that followed it elsewhere ended the group meanwhile, and no
    log said who had died.
    """
    four.start()
    four.wait(four.serving)
    os.kill(four.status(3)["engine"], signal.SIGKILL)
    os.kill(int((four.folder / "rank0.scheduler").read_text()), signal.SIGKILL)
    four.wait(lambda: four.serving(epoch=2))
    assert "failed: the engine was ended by SIGKILL" in four.log(3)


def test_a_scheduler_that_only_followed_is_not_named_for_who_died(pair: Ranks) -> None:
    """Rank 0's scheduler lost its peer and went first, its server still ran: the group named rank 0."""
    pair.start()
    pair.wait(pair.serving)
    pair.mode(0, "say RuntimeError: Connection closed by peer [127.0.0.12]:40000")
    pair.wait(lambda: "Connection closed by peer" in pair.log(0))
    os.kill(int((pair.folder / "rank0.scheduler").read_text()), signal.SIGKILL)
    pair.wait(lambda: "scheduler process" in pair.log(0))
    os.kill(pair.status(1)["engine"], signal.SIGKILL)
    pair.wait(lambda: pair.serving(epoch=2))
    assert "stopping: rank 1 on spark2: the engine was ended by SIGKILL" in pair.log(0)


def test_what_the_memory_guard_ended_is_a_failure_with_its_figures(pair: Ranks) -> None:
    pair.plan["limits"]["restarts"] = 1
    pair.start()
    for again in (True, False):
        pair.wait(pair.serving)
        told = {"when": time.time(), "found": "7.5 GiB available, the floor is 8"}
        (pair.folder / "run1/memory-guard.json").write_text(json.dumps(told))
        os.kill(pair.status(1)["engine"], signal.SIGKILL)
        if again:
            pair.wait(lambda: pair.serving(epoch=2))
            assert pair.status(0)["spent"] == 1
    cause = pair.until(0, "down")["cause"]
    assert "rank 1 on spark2: the engine was ended by the node's memory guard: 7.5 GiB available" in cause
    assert pair.status(0)["stops"] == {"memory-guard": 2}


def test_a_node_that_shuts_down_costs_no_restart(pair: Ranks) -> None:
    """It tells every process to go, in any order: the engine's end is no failure then."""
    pair.plan["limits"]["restarts"] = 0
    pair.start()
    pair.wait(pair.serving)
    os.kill(pair.status(1)["engine"], signal.SIGTERM)
    time.sleep(0.5)
    pair.processes[1].terminate()
    pair.processes[1].wait(10)
    pair.start(1)
    pair.wait(lambda: pair.serving(epoch=2))
    assert "down:" not in pair.log(0)


def test_it_runs_from_the_file_of_its_config_map_alone(pair: Ranks) -> None:
    """As in a pod: no checkout, no installed package, and the oldest Python that is promised where there is one."""
    mounted = pair.folder / "rank"
    mounted.write_bytes(pack.program("rank").archive)
    pair.program, pair.python = [str(mounted)], oldest_python()
    pair.environment = {key: value for key, value in pair.environment.items() if key != "PYTHONPATH"}
    pair.start()
    pair.wait(pair.serving)
    assert pair.ask(0, "/ready")[0] == 200


@pytest.mark.parametrize("victim", [0, 1])
def test_a_killed_supervisor_comes_back_into_a_new_epoch(pair: Ranks, victim: int) -> None:
    pair.start()
    pair.wait(pair.serving)
    engine = pair.status(victim)["engine"]
    pair.processes[victim].kill()
    pair.processes[victim].wait()
    pair.wait(lambda: not pair.status(1 - victim)["serving"])
    os.killpg(engine, signal.SIGKILL)  # a container ends with its process 1; here nothing else does it
    pair.start(victim)
    pair.wait(lambda: pair.serving(epoch=2))


def test_the_engine_s_log_is_streamed_with_rank_and_epoch_and_without_secrets(pair: Ranks) -> None:
    pair.start(HF_TOKEN="hf_canary_000")
    pair.wait(pair.serving)
    assert "[rank 1 epoch 1] arguments read, the key is ***" in pair.log(1)
    assert "hf_canary_000" not in pair.log(0) + pair.log(1)
    words = Path(f"/proc/{pair.processes[1].pid}/cmdline").read_text()
    assert "hf_canary_000" not in words


def test_never_ready_without_a_token(pair: Ranks) -> None:
    pair.plan["limits"] |= {"start": 2.0}
    pair.mode(0, "no-token")
    pair.start()
    pair.wait(lambda: "failed: no token 2 s after the start" in pair.log(0))
    assert all(pair.ask(n, "/ready")[0] == 503 for n in (0, 1))
    assert "serving:" not in pair.log(0) + pair.log(1)
    pair.mode(0, "")
    pair.wait(lambda: pair.serving(epoch=2))
    assert [pair.ask(n, path)[0] for n in (0, 1) for path in ("/ready", "/live", "/started")] == [200] * 6


def test_tokens_that_stop_coming_make_it_unready_then_restart_it(pair: Ranks) -> None:
    pair.start()
    pair.wait(pair.serving)
    pair.mode(0, "no-token")
    pair.wait(lambda: not pair.status(1)["serving"])
    assert "quiet: rank 0 gives no token" in pair.log(1)
    pair.wait(lambda: "failed: no progress for 2 s although the engine runs" in pair.log(0))
    pair.mode(0, "")
    pair.wait(pair.serving)


def counted(pair: Ranks) -> None:
    """An engine with counters, and no path of its own that makes a token; `blind` is longer than any test."""
    counters = {"metrics": "/metrics", "requests": ["fake:running"], "moves": ["fake:tokens"], "generates": ""}
    pair.plan |= counters
    pair.plan["limits"] |= {"blind": 600.0, "token": 1.0}
    pair.start()
    pair.wait(pair.serving)
    time.sleep(1)  # its counters were seen


def test_an_engine_that_answers_nothing_more_is_no_engine_without_counters(pair: Ranks) -> None:
    """llama.cpp with a frozen lender was waited for: our own questions counted as clients whose work cannot be seen."""
    counted(pair)
    pair.mode(0, "frozen")
    pair.wait(lambda: "failed: no progress for" in pair.log(0))
    pair.mode(0, "")
    pair.wait(lambda: pair.serving(epoch=2))


def test_a_client_that_waits_for_such_an_engine_does_not_wait_for_half_an_hour(pair: Ranks) -> None:
    counted(pair)
    pair.mode(0, "frozen")
    with socket.create_connection(("127.0.0.1", pair.plan["port"])) as client:
        client.sendall(b"GET /health HTTP/1.1\r\nhost: x\r\n\r\n")
        pair.wait(lambda: "failed: no progress for" in pair.log(0))
    pair.mode(0, "")
    pair.wait(lambda: pair.serving(epoch=2))


def test_a_dead_scheduler_behind_a_living_server_is_a_dead_engine(pair: Ranks) -> None:
    pair.start()
    pair.wait(pair.serving)
    os.kill(int((pair.folder / "rank1.scheduler").read_text()), signal.SIGKILL)
    pair.wait(lambda: pair.serving(epoch=2))
    assert "scheduler process" in pair.log(1) and "is gone while its server still runs" in pair.log(1)


@pytest.mark.parametrize(("kind", "words"), [("socket", "NCCL transport socket"), ("one-rail", "1 only, 2 rails")])
def test_another_transport_than_planned_stops_the_group_with_the_reason(pair: Ranks, kind: str, words: str) -> None:
    pair.plan |= {"rails": 2}
    words = words.replace("1 only", "rocep1s0f0v0 only")
    pair.mode(1, kind)
    pair.start()
    pair.wait(lambda: words in pair.status(1)["cause"])
    assert "serving:" not in pair.log(0) + pair.log(1)
    pair.wait(lambda: "rank 1 on spark2: NCCL transport" in pair.log(0))
    pair.mode(1, "")
    pair.wait(pair.serving)
    assert pair.status(0)["transport"].startswith("NCCL transport roce")


def test_a_transport_that_stays_wrong_is_tried_once_more_and_then_down_with_its_cause(pair: Ranks) -> None:
    """Rails are looked at anew before the second start; what NCCL is forced to, a third one finds too."""
    pair.plan |= {"rails": 2}
    pair.mode(1, "socket")
    pair.start()
    pair.until(0, "down", "failed 2 times in a row without a token")
    pair.until(1, "down")
    assert "NCCL transport socket" in pair.status(0)["cause"]
    time.sleep(1)
    assert pair.log(0).count("engine: started") == pair.log(1).count("engine: started") == 2
    pair.mode(1, "")
    pair.processes[0].kill()
    pair.start(0)  # by hand, once it is mended
    pair.wait(pair.serving)


@pytest.mark.parametrize("kind", ["late one-rail", "late socket"])
def test_no_rank_serves_before_each_has_seen_its_own_way(pair: Ranks, kind: str) -> None:
    """Rank 0 gives tokens at once; what rank 1 hears of NCCL comes seconds later, and is bad."""
    pair.plan |= {"rails": 2}
    pair.mode(1, kind)
    pair.start()
    pair.wait(lambda: "NCCL transport" in pair.status(1)["cause"])
    assert "serving:" not in pair.log(0) + pair.log(1)
    pair.mode(1, "late")
    pair.wait(pair.serving)


def test_another_transport_is_a_warning_when_the_policy_says_so(pair: Ranks) -> None:
    pair.plan |= {"rails": 2, "policy": "warn"}
    pair.mode(1, "socket")
    pair.start()
    pair.wait(pair.serving)
    assert "warning: NCCL transport socket" in pair.log(1)


def test_a_crash_loop_ends_at_its_budget_with_its_cause(pair: Ranks) -> None:
    pair.plan["limits"] |= {"restarts": 1}
    pair.plan["patterns"] = [
        {"rule": "mem-too-low", "severity": "error", "pattern": "increase --mem-fraction", "why": "", "fix": "raise it"}
    ]
    pair.mode(1, "crash RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.")
    pair.start()
    pair.until(0, "down", "failed 2 times in a row without a token")
    pair.until(1, "down")
    cause = pair.status(0)["cause"]
    assert "rank 1 on spark2: the engine ended with status 7; mem-too-low:" in cause and "raise it" in cause
    code, text = pair.ask(0, "/ready")
    assert code == 503 and "mem-too-low" in text
    assert "mem-too-low" in (pair.folder / "words0").read_text()
    assert pair.ask(0, "/live")[0] == 200, "down is no reason to restart the container"
    time.sleep(1)
    assert pair.status(0)["engine"] is None and pair.log(1).count("engine: started") == 2
    pair.processes[0].kill()
    pair.start(0)  # by hand: one more try, since the others remember what a new rank 0 cannot
    pair.until(0, "down", "failed 3 times in a row without a token")
    assert pair.log(1).count("engine: started") == 3


@pytest.mark.parametrize("between", [0, 1])
def test_what_served_and_was_ended_from_outside_is_between_two_failures(pair: Ranks, between: int) -> None:
    """Kills that come sooner after the token than a group proves itself in: twenty of them were a row without one."""
    pair.plan["limits"] |= {"restarts": 1, "window": 1.0}
    pair.start()
    pair.wait(pair.serving)
    for epoch in (2, 4):
        os.kill(pair.status(1)["engine"], signal.SIGKILL)
        pair.wait(lambda: pair.serving(epoch=epoch) or "down:" in pair.log(0))  # noqa: B023
        pair.processes[between].terminate()
        pair.processes[between].wait(20)
        pair.start(between)
        pair.wait(lambda: pair.serving(epoch=epoch + 1) or "down:" in pair.log(0))  # noqa: B023
    assert "down:" not in pair.log(0)


def test_who_falls_at_its_first_token_each_time_is_given_up_in_true_words(pair: Ranks) -> None:
    pair.plan["limits"] |= {"restarts": 1, "window": 0.1}
    pair.start()
    for epoch in (1, 2):
        pair.wait(lambda: pair.serving(epoch=epoch))  # noqa: B023
        os.kill(pair.status(1)["engine"], signal.SIGKILL)
    cause = pair.until(0, "down")["cause"]
    assert (
        "failed 2 times in a row, each time before it had served for 10 s" in cause and "without a token" not in cause
    )


def test_an_engine_that_ignores_term_is_killed_and_nothing_is_left(pair: Ranks) -> None:
    pair.mode(1, "ignore-term")
    pair.start()
    pair.wait(pair.serving)
    before = time.monotonic()
    pair.processes[1].terminate()
    assert pair.processes[1].wait(30) == 0
    assert time.monotonic() - before < 25
    pair.wait(lambda: not pair.status(0)["serving"] and pair.status(0)["engine"] is None)
    pair.end()
    assert strays(pair.folder) == []


def slowly_asked(pair: Ranks) -> http.client.HTTPConnection:
    """With a request on its way that ends when the engine's mode does."""
    pair.mode(0, "slow-request")
    client = http.client.HTTPConnection("127.0.0.1", pair.plan["port"], timeout=30)
    client.request("POST", "/v1/chat/completions", "{}")
    time.sleep(0.3)
    return client


def test_running_requests_may_end_before_the_engine_is_stopped(pair: Ranks) -> None:
    pair.start()
    pair.wait(pair.serving)
    client = slowly_asked(pair)
    pair.processes[1].terminate()
    pair.wait(lambda: "draining: rank 1 on spark2 was told to go" in pair.log(0))
    pair.mode(0, "")
    assert b"hello" in client.getresponse().read()
    client.close()
    pair.processes[1].wait(30)


def test_a_client_s_connection_is_told_and_the_rank_s_own_questions_are_not(pair: Ranks) -> None:
    """By this gauge a group on demand is left alone; the supervisor asks its engine every 0.3 s here."""
    pair.start()
    pair.wait(pair.serving)

    def told(rank: int = 0) -> list[float]:
        page = exposition.read(pair.ask(rank, "/metrics")[1] + "\n")
        return [sample.value for sample in page if sample.name == "sparkloom_rank_connections"]

    assert {value for _ in range(40) for value in told()} == {0.0}
    assert told(1) == []
    with socket.create_connection(("127.0.0.1", pair.plan["port"])):
        pair.wait(lambda: told() == [1.0])
    pair.wait(lambda: told() == [0.0])


def test_a_rank_that_drains_is_not_ready_while_what_runs_comes_to_its_end(pair: Ranks) -> None:
    pair.start()
    pair.wait(pair.serving)
    client = slowly_asked(pair)
    pair.processes[0].terminate()
    pair.wait(lambda: pair.ask(0, "/ready")[0] == 503)
    pair.mode(0, "")
    assert b"hello" in client.getresponse().read()
    client.close()


def test_a_missing_peer_is_named(pair: Ranks) -> None:
    pair.start(0)
    assert pair.until(0, "missing")["text"] == "rank 1 on spark2 has not come"
    assert pair.ask(0, "/ready")[0] == 503
    pair.start(1)
    pair.wait(pair.serving)


def test_a_port_that_something_else_holds_is_named(pair: Ranks) -> None:
    with socket.create_server(("127.0.0.11", pair.plan["control_port"])):
        pair.start(0)
        text = pair.until(0, "refused")["text"]
    assert text.startswith(f"cannot listen at 127.0.0.11:{pair.plan['control_port']}: ")
    pair.start(1)
    pair.wait(pair.serving)


def test_a_missing_head_is_named(pair: Ranks) -> None:
    pair.start(1)
    assert "rank 0 on spark1 does not answer at 127.0.0.11" in pair.until(1, "missing")["text"]


def test_another_configuration_is_refused_by_name(pair: Ranks) -> None:
    pair.start(0)
    pair.start(1, config="0ther")
    assert "rank 1 on spark2 is refused: it runs configuration 0ther" in pair.until(0, "missing")["text"]
    assert "rank 0 refuses this rank: it runs configuration 0ther" in pair.until(1, "missing")["text"]


def test_a_stopped_machine_is_noticed_without_a_word(pair: Ranks) -> None:
    pair.start()
    pair.wait(pair.serving)
    pair.processes[1].send_signal(signal.SIGSTOP)
    try:
        pair.wait(lambda: "rank 1 on spark2 is gone: no word for 2 s" in pair.log(0))
    finally:
        pair.processes[1].send_signal(signal.SIGCONT)
    pair.wait(lambda: pair.serving(epoch=2))


def test_a_rank_whose_image_lacks_a_package_is_refused_before_it_loads(tmp_path: Path) -> None:
    ranks = Ranks(tmp_path, 1)
    ranks.plan |= {"package": "json", "modules": [{"module": "no_such_loader", "flag": "load_format no_such"}]}
    try:
        ranks.start()
        ranks.wait(lambda: ranks.status(0).get("phase") == "refused")
        assert "No module named 'no_such_loader', which load_format no_such needs" in ranks.log(0)
        assert not ranks.status(0).get("engine"), "no engine was started"
    finally:
        ranks.end()
