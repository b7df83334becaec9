"""What a rank tells a Prometheus: its own state, and its engine's counters with its labels on them."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from sparkloom.onnode.rank import answers, causes, exposition
from sparkloom.onnode.rank.plan import GroupPlan
from sparkloom.onnode.rank.status_log import StatusLog
from sparkloom.render.manifests import supervision
from tests import exposition as told
from tests.onnode.rank.ranks import Ranks
from tests.onnode.rank.test_probes import Answerer, ask, served

RAILS = [
    {"name": name, "interface": f"net{n + 1}", "address": f"192.168.10{n}.11", "prefix": 24, "mtu": 9000, "hca": hca}
    for n, (name, hca) in enumerate((("a", "rocep1s0f0v0"), ("b", "roceP2p1s0f0v0")))
]


def order(folder: Path, **more: Any) -> GroupPlan:
    members = [{"rank": 0, "node": "spark1", "address": "127.0.0.1", "rails": RAILS},
               {"rank": 1, "node": "spark2", "address": "127.0.0.2", "rails": RAILS}]  # fmt: skip
    data = {"profile": "a--model-2.5", "engine": "sglang", "release": "0.5.12", "image": 'i:"1"', "port": 1,
            "members": members, "run": str(folder), "sys": str(folder / "sys")}  # fmt: skip
    return GroupPlan.of({**data, **more})


def page(log: StatusLog) -> list[told.Sample]:
    return told.read(exposition.page(log.plan, log.rank, dict(log.status), time.time()))


@pytest.fixture
def log(tmp_path: Path) -> StatusLog:
    return StatusLog(order(tmp_path), 0)


def test_a_new_rank_has_a_whole_page_with_its_labels(log: StatusLog) -> None:
    samples = page(log)
    mine = {"group": "a--model-2.5", "rank": "0", "node": "spark1"}
    assert samples and all(mine.items() <= sample.labels.items() for sample in samples)
    assert {sample.name for sample in samples} <= set(exposition.NAMES)
    assert told.one(samples, "sparkloom_rank_phase", phase="checking") == 1
    assert sum(s.value for s in samples if s.name == "sparkloom_rank_phase") == 1
    assert told.one(samples, "sparkloom_rank_ready") == 0
    assert told.one(samples, "sparkloom_rank_restart_budget") == 5
    absent = {"sparkloom_rank_start_seconds", "sparkloom_rank_requests", "sparkloom_rank_progress_age_seconds"}
    assert not absent & {sample.name for sample in samples}, "what nobody knows is not 0"


def test_a_group_of_another_name_is_called_by_it(tmp_path: Path) -> None:
    log = StatusLog(order(tmp_path, group="chat"), 1)
    assert {(s.labels["group"], s.labels["rank"], s.labels["node"]) for s in page(log)} == {("chat", "1", "spark2")}


@pytest.mark.parametrize(
    ("status", "phase"),
    [
        ({"phase": "rails"}, "checking"),
        ({"phase": "peers"}, "waiting"),
        ({"phase": "engine"}, "loading"),
        ({"phase": "engine", "compiling": True}, "compiling"),
        ({"phase": "serving", "serving": True}, "ready"),
        ({"phase": "serving", "serving": True, "compiling": True}, "ready"),
        ({"phase": "warning", "serving": True}, "ready"),
        ({"phase": "quiet"}, "quiet"),
        ({"phase": "draining"}, "draining"),
        ({"phase": "leaving"}, "draining"),
        ({"phase": "stopped"}, "stopping"),
        ({"phase": "refused"}, "refused"),
        ({"phase": "down"}, "down"),
    ],
)
def test_its_words_are_one_of_a_few_phases(status: dict[str, Any], phase: str, log: StatusLog) -> None:
    assert exposition.phase({**log.status, **status}) == phase and phase in exposition.PHASES


@pytest.mark.parametrize(
    ("why", "cause"),
    [
        ("the engine ended with status 7; NCCL transport socket: no", "engine-ended"),
        ("rank 1 on spark2: the engine was ended by SIGKILL (by hand, or by the kernel)", "engine-ended"),
        ("rank 1 on spark2: rail b: net2 has no carrier: cable; the engine ended with status 1", "rail"),
        ("NCCL transport socket: no RDMA (model_serving_transport: refuse)", "transport"),
        ("rank 0 on s1: NCCL says nothing in this log, so nothing proves the rails; set env", "transport"),
        ("no token 2700 s after the start; last seen: loading", "no-token"),
        ("no progress for 101 s although the engine runs (3 requests run or wait; ...)", "no-progress"),
        ("scheduler process 77 (sglang::scheduler) is gone while its server still runs", "scheduler-gone"),
        ("rank 1 on spark2 did not listen at 192.168.100.12:50052 in 300 s; its own log says why", "lender"),
        ("rank 1 on spark2 is gone: its supervisor's connection closed", "rank-lost"),
        ("rank 1 on spark2 was started anew", "rank-lost"),
        ("rank 1 on spark2: the engine was ended by the node's memory guard: 7.5 GiB available", "memory-guard"),
        ("rank 1 on spark2 was told to go", "told-to-go"),
        ("this rank was told to go", "told-to-go"),
        ("rank 0 was told to go", "told-to-go"),
        ("sglang cannot be started: No such file or directory; is this the engine's image?", "not-started"),
        ("rank 2 on s3: sglang cannot be started: No such file", "not-started"),
        ("", "other"),
    ],
)
def test_every_end_of_an_epoch_is_of_one_kind(why: str, cause: str) -> None:
    assert causes.stop(why) == cause and cause in causes.STOPS


def test_an_engine_s_words_make_no_series_of_their_own(tmp_path: Path) -> None:
    """A client's text can stand in an engine's log: as a label it would be a series for each request."""
    patterns = [{"rule": "nccl-socket-fallback", "severity": "error", "pattern": "x", "fix": "y"}]
    log = StatusLog(order(tmp_path, patterns=patterns), 0)
    log.cause("failed", "the engine ended with status 1; nccl-socket-fallback: NET/Socket; fix: rails")
    assert told.one(page(log), "sparkloom_rank_cause", rule="nccl-socket-fallback", phase="stopping") == 1
    log.cause("failed", "the engine ended with status 1; some-body-s: text")
    assert told.one(page(log), "sparkloom_rank_cause", rule="") == 1


def test_a_rank_that_names_a_cause_is_still_asked(tmp_path: Path) -> None:
    """Red before: its page broke at the first cause, as lines that are noise are of no rule."""
    patterns = json.loads(supervision.patterns("vllm"))
    log = StatusLog(order(tmp_path, patterns=patterns), 0)
    log.cause("down", f"the engine ended with status 1; {patterns[0]['rule']}: so it said; fix: that")
    assert told.one(page(log), "sparkloom_rank_cause", rule=patterns[0]["rule"], phase="down") == 1


def test_stops_are_counted_from_0_on(log: StatusLog) -> None:
    assert told.one(page(log), "sparkloom_rank_stops_total", cause="engine-ended") == 0
    log.stopped("the engine ended with status 1")
    log.stopped("rank 1 on spark2: the engine ended with status 1")
    assert told.one(page(log), "sparkloom_rank_stops_total", cause="engine-ended") == 2
    assert told.one(page(log), "sparkloom_rank_stops_total", cause="rail") == 0


def test_the_transport_is_the_one_that_was_taken(log: StatusLog) -> None:
    assert not [s for s in page(log) if s.name == "sparkloom_rank_transport"]
    log.status["transport"] = "NCCL transport roce-partial: one of two rails"
    taken = {s.labels["transport"]: s.value for s in page(log) if s.name == "sparkloom_rank_transport"}
    assert taken == {name: float(name == "roce-partial") for name in exposition.TRANSPORTS}


def counter(folder: Path, hca: str, name: str, text: str) -> None:
    file = folder / "sys/infiniband" / hca / "ports/1" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def test_rdma_devices_are_counted_where_they_count(tmp_path: Path) -> None:
    counter(tmp_path, "rocep1s0f0v0", "counters/port_xmit_data", "1000\n")
    counter(tmp_path, "rocep1s0f0v0", "counters/port_rcv_data", "N/A (no PMA)\n")
    counter(tmp_path, "rocep1s0f0v0", "hw_counters/out_of_sequence", "3\n")
    counter(tmp_path, "somebody-else", "counters/port_xmit_data", "9\n")
    samples = page(StatusLog(order(tmp_path, rdma=True), 0))
    assert [(s.labels["rail"], s.labels["direction"], s.value) for s in samples if "rdma_bytes" in s.name] == [
        ("a", "sent", 4000)
    ]
    assert told.one(samples, "sparkloom_rank_rdma_errors_total", rail="a", error="out_of_sequence") == 3
    assert not [s for s in page(StatusLog(order(tmp_path), 0)) if "rdma" in s.name], "no RDMA: no counters of it"


def test_a_rail_that_broke_is_the_one_that_is_told(log: StatusLog) -> None:
    assert not [s for s in page(log) if s.name == "sparkloom_rank_rail_up"], "nobody looks while no engine runs"
    log.status |= {"engine": 7, "rails": ["rail b: net2 has no carrier: cable, or the switch's port"]}
    assert told.one(page(log), "sparkloom_rank_rail_up", rail="a") == 1
    assert told.one(page(log), "sparkloom_rank_rail_up", rail="b") == 0


def test_weights_that_changed_below_a_running_engine_are_told(tmp_path: Path) -> None:
    log = StatusLog(order(tmp_path, store="/models"), 0)
    assert told.one(page(log), "sparkloom_rank_weights_changed") == 0
    log.faults("weights", ["weights of a/b: model-1.safetensors was changed after it was verified"])
    assert told.one(page(log), "sparkloom_rank_weights_changed") == 1


# --- the engine's own page -------------------------------------------------------------------------------------------

ENGINE = """# HELP sglang:num_running_reqs The number of running requests.
# TYPE sglang:num_running_reqs gauge
sglang:num_running_reqs{engine_type="unified",model_name="a/b"} 3.0
# TYPE sglang:plain counter
sglang:plain 7
sglang:empty{} 8 1700000000000
python_info{version="3.12"} 1.0
"""
HOSTILE = """sparkloom_rank_ready{group="other",rank="0",node="spark4"} 1
sglang:generation_tokens_total{group="other"} 1e9
sglang:generation_tokens_total{x="1", node="spark4"} 1e9
node_memory_MemAvailable_bytes 0
up 0
"""
OWN = 'group="g",rank="0",node="spark1"'


def test_each_line_of_the_engine_gets_the_rank_s_labels() -> None:
    made = exposition.labelled(ENGINE, "sglang:", OWN)
    samples = told.read(made)
    mine = {"group": "g", "rank": "0", "node": "spark1"}
    assert {s.name: s.value for s in samples} == {"sglang:num_running_reqs": 3, "sglang:plain": 7, "sglang:empty": 8}
    assert all(mine.items() <= s.labels.items() for s in samples)
    assert samples[0].labels["model_name"] == "a/b"
    assert "# HELP sglang:num_running_reqs" in made and "python_info" not in made


def test_an_engine_speaks_of_nobody_else() -> None:
    """Somebody who took it over could else say that other groups are well, or that a host has no memory."""
    made = exposition.labelled(ENGINE + HOSTILE, "sglang:", OWN)
    assert made == exposition.labelled(ENGINE, "sglang:", OWN)


def test_a_long_page_costs_little() -> None:
    """An engine has some 2,000 lines: five times what it costs to split them, 5 ms of a slow processor."""
    line = 'vllm:request_latency_bucket{engine="0",le="%s",model_name="nvidia/a-model-with-a-long-name"} %s\n'
    text = "".join(line % (n, n) for n in range(2000))
    took, split = [], []
    for _ in range(20):
        begun = time.thread_time()
        exposition.labelled(text, "vllm:", OWN)
        between = time.thread_time()
        assert [line.split('"') for line in text.splitlines()]
        took.append(between - begun)
        split.append(time.thread_time() - between)
    assert min(took) < 8 * min(split)


def test_its_own_page_costs_little(tmp_path: Path) -> None:
    for hca in ("rocep1s0f0v0", "roceP2p1s0f0v0"):
        counter(tmp_path, hca, "counters/port_xmit_data", "1000\n")
    log, took = StatusLog(order(tmp_path, rdma=True), 0), []
    for _ in range(50):
        begun = time.thread_time()
        exposition.page(log.plan, 0, dict(log.status), time.time())
        took.append(time.thread_time() - begun)
    assert min(took) < 0.005


class Engine(BaseHTTPRequestHandler):
    asked: list[str]
    slow = 0.0

    def do_GET(self) -> None:
        type(self).asked.append(self.headers.get("Authorization", ""))
        time.sleep(type(self).slow)
        self.send_response(200 if self.headers.get("Authorization") == "Bearer its-own-key" else 401)
        self.end_headers()
        self.wfile.write(ENGINE.encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    Engine.asked, Engine.slow = [], 0.0
    (tmp_path / "key").write_text("its-own-key\n")
    monkeypatch.setenv(answers.KEY_FILE, str(tmp_path / "key"))
    server = ThreadingHTTPServer(("127.0.0.1", 0), Engine)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_port
    server.shutdown()
    server.server_close()


COUNTED = {"metrics": "/metrics", "requests": ["sglang:num_running_reqs"]}


def test_the_supervisor_has_the_key_and_a_scraper_needs_none(tmp_path: Path, engine: int) -> None:
    """llama.cpp keeps /metrics behind its key; with this page no Prometheus needs any engine's."""
    port = served(StatusLog(order(tmp_path, port=engine, **COUNTED), 0))
    status, text = ask("127.0.0.5", port, "/metrics/engine")
    assert status == 200 and told.one(told.read(text), "sglang:num_running_reqs", group="a--model-2.5") == 3
    assert Engine.asked == ["Bearer its-own-key"]
    assert "its-own-key" not in text


def test_many_who_ask_at_once_cost_the_engine_one_question(tmp_path: Path, engine: int) -> None:
    Engine.slow = 0.5
    port = served(StatusLog(order(tmp_path, port=engine, **COUNTED), 0))
    heard = list[int]()

    def scrape() -> None:
        heard.append(ask("127.0.0.5", port, "/metrics/engine")[0])

    asking = [threading.Thread(target=scrape) for _ in range(20)]
    for one in asking:
        one.start()
    time.sleep(0.1)
    begun = time.monotonic()
    assert ask("127.0.0.5", port, "/live")[0] == 200 and time.monotonic() - begun < 0.3
    for one in asking:
        one.join()
    assert heard == [200] * 20 and len(Engine.asked) <= 2


def test_an_engine_that_gives_no_page_is_told_apart_from_one_that_has_none(tmp_path: Path, engine: int) -> None:
    gone = served(StatusLog(order(tmp_path, port=1, **COUNTED), 0))
    assert ask("127.0.0.5", gone, "/metrics/engine")[0] == 503
    for log in (StatusLog(order(tmp_path, port=engine, metrics="/metrics"), 0),  # TensorRT-LLM's page is no such
                StatusLog(order(tmp_path, port=engine, **COUNTED), 1)):  # another rank has no API  # fmt: skip
        status, text = ask("127.0.0.5", served(log), "/metrics/engine")
        assert status == 200 and told.read(text) == []
    assert Engine.asked == []


@pytest.mark.parametrize(
    "request_line", [b"GET /metricsx HTTP/1.1", b"GET /metrics/ HTTP/1.1", b"GET /metrics/key HTTP/1.1"]
)
def test_nothing_else_is_a_page(request_line: bytes, log: StatusLog) -> None:
    assert Answerer(log).told(request_line + b"\r\n\r\n").startswith(b"HTTP/1.1 404 ")


# --- a group that lives ----------------------------------------------------------------------------------------------


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Ranks]:
    ranks = Ranks(tmp_path, 2)
    ranks.plan |= {"metrics": "/metrics", "requests": ["fake:running"], "moves": ["fake:tokens"]}
    yield ranks
    ranks.end()


def test_a_group_tells_how_it_started_stopped_and_came_back(pair: Ranks) -> None:
    pair.start()
    pair.wait(pair.serving)

    def now(rank: int = 0) -> list[told.Sample]:
        return told.read(pair.ask(rank, "/metrics")[1] + "\n")

    pair.wait(lambda: any(s.name == "sparkloom_rank_requests" for s in now()))
    for rank in (0, 1):
        assert told.one(now(rank), "sparkloom_rank_ready") == 1
        assert told.one(now(rank), "sparkloom_rank_phase", phase="ready") == 1
        assert told.one(now(rank), "sparkloom_rank_epoch") == 1
        assert 0 < told.one(now(rank), "sparkloom_rank_start_seconds") < 60
    assert told.one(now(), "sparkloom_rank_progress_age_seconds") < 30
    assert told.one(told.read(pair.ask(0, "/metrics/engine")[1] + "\n"), "fake:running", group="p", node="spark1") == 0
    os.kill(pair.status(1)["engine"], signal.SIGKILL)
    pair.wait(lambda: pair.serving(epoch=2))
    for rank in (0, 1):
        assert told.one(now(rank), "sparkloom_rank_stops_total", cause="engine-ended") == 1
        assert told.one(now(rank), "sparkloom_rank_epoch") == 2
    pair.wait(lambda: told.one(now(), "sparkloom_rank_restart_budget_spent") == 1, 10)
