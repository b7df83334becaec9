"""The router before a group that sleeps: Envoy itself, a stand-in of the waker, an engine that comes and goes."""

from __future__ import annotations

import concurrent.futures
import http.client
import json
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from sparkloom.onnode.now.gather import HELD_BACK, held_back
from sparkloom.render.router import envoy
from testbed.standins.pacing.process import Engine
from tests.render.router.running import ALICE, CHAT, PEOPLE, Answer, Router, asked, bearer, running
from tests.render.router.waker import Probe, Waker
from tests.until import until

pytestmark = pytest.mark.oracle

NAME, LABEL = "glm-5.3-air", "glm-5-3-air"  # the dot is a part of many models' names
NOTICED = 6.5  # seconds until a supervisor's word is heard, or its new one


class Site:
    """One group on demand, one that never sleeps, and what stands beside them."""

    def __init__(self, router: Router, engine: Engine, probe: Probe, waker: Waker) -> None:
        self.router, self.engine, self.probe, self.waker = router, engine, probe, waker

    def stat(self, what: str, cluster: str = LABEL) -> float:
        page = self.router.ask("GET", "/stats/prometheus", port=self.router.terms.metrics_port).body.decode()
        name = f'envoy_cluster_{what}{{envoy_cluster_name="{cluster}"}} '
        assert name in page, f"no series {name}"
        return float(page.partition(name)[2].partition("\n")[0])

    def healthy(self) -> bool:
        return self.stat("membership_healthy") == 1

    def state(self) -> str:
        time.sleep(2.1)  # the list keeps what it knew a moment ago
        return str(self.router.get(f"/v1/models/{NAME}").json["state"])

    def asleep(self) -> None:
        """The engine is gone, and the router knows."""
        self.probe.ready = False
        if self.engine.process.poll() is None:
            self.engine.down()
        until(lambda: not self.healthy(), 15)

    def awake(self) -> None:
        if self.engine.process.poll() is not None:
            self.engine.up()
        self.probe.ready = True
        until(self.healthy, 15)

    def ask(self, tokens: int = 5) -> http.client.HTTPConnection:
        """A stream; its answer is still to come."""
        connection = self.router.connect()
        connection.request("POST", CHAT, json.dumps(asked(NAME, tokens)), bearer(ALICE))
        return connection


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    engine, probe = Engine(NAME, "ttft=0.05", "rate=60"), Probe()
    other, waker = Engine("other", "ttft=0.05"), Waker()
    more: dict[str, dict[str, Any]] = {
        NAME: {
            "waker": waker.address, "label": LABEL, "health_port": probe.port, "health_path": "/ready", "at_once": 8,
            "aliases": ("air",),
        }
    }  # fmt: skip
    try:
        with running(tmp_path_factory.mktemp("router"), {NAME: engine, "other": other}, **more) as router:
            yield Site(router, engine, probe, waker)
    finally:
        waker.close()
        probe.close()
        for one in (engine, other):
            one.down()


@pytest.fixture
def site(made: Site) -> Iterator[Site]:
    """Awake, and nothing asked of its waker."""
    made.awake()
    made.waker.awake.clear()
    made.waker.heard.clear()
    made.waker.left = 0
    made.engine.truth()
    yield made
    made.waker.awake.set()
    if made.waker.held:
        until(lambda: not made.waker.held, 10)


def test_while_it_is_awake_its_waker_hears_of_no_request(site: Site) -> None:
    before = site.stat("upstream_rq_total"), site.stat("upstream_rq_total", f"{LABEL}+waker")
    assert site.router.post(NAME, tokens=3).status == site.router.post("air").status == 200
    assert site.waker.heard == [] and len(site.engine.truth()) == 2
    after = site.stat("upstream_rq_total"), site.stat("upstream_rq_total", f"{LABEL}+waker")
    assert after == (before[0] + 2, before[1]), "each at its own cluster, whatever leads to them"
    assert site.state() == "up" and site.waker.looks > 0


def test_asleep_its_waker_answers_in_its_own_words(site: Site) -> None:
    site.asleep()
    answer = site.router.post(NAME, stream=False)
    assert (answer.status, answer.code, answer.headers["retry-after"]) == (503, "model_wakes", "42")
    (heard,) = site.waker.heard
    assert heard["authorization"] == f"Bearer {site.engine.key}", "the engine's own, for the waker to hand on"
    assert heard["x-sparkloom-group"] == NAME and json.loads(heard["body"])["model"] == NAME
    assert ALICE not in str(heard)
    assert site.state() == "sleeps" and site.router.get("/v1/models/air").json["state"] == "sleeps"
    assert site.router.get("/v1/models/other").json["state"] == "up"


def used(router: Router) -> tuple[float, float]:
    """Answers and tokens."""
    who, series = f'{{person="alice",model="{NAME}"', router.series()
    answers = [count for name, count in series.items() if name.startswith(f"sparkloom_router_requests_total{who}")]
    return sum(answers), series.get(f"sparkloom_router_completion_tokens_total{who}}}", 0)


def test_a_stream_waits_for_its_waking_and_goes_on_when_the_engine_is_up(site: Site) -> None:
    """Its engine is asked once, by the router; what was used is counted once."""
    site.asleep()
    before = used(site.router)
    waiting = site.ask(tokens=240)
    until(lambda: site.waker.held == 1, 10)
    assert site.waker.heard[0]["x-sparkloom-stream"] == "true"
    site.awake()
    heard = len(site.waker.heard)
    assert site.router.post(NAME).status == 200 and len(site.waker.heard) == heard, "others go to the engine now"
    site.waker.awake.set()
    answer = waiting.getresponse()
    assert answer.status == 200 and answer.headers["content-type"].startswith("text/event-stream")
    assert "x-sparkloom-awake" not in answer.headers
    text = answer.read()
    waiting.close()
    assert text.count(b'"content": "') >= 240 - 60 and text.rstrip().endswith(b"data: [DONE]")
    assert len(site.waker.heard) == heard and len(site.engine.truth()) == 2
    after = used(site.router)
    assert (after[0] - before[0], after[1] - before[1]) == (2, 241)


@pytest.mark.parametrize("megabytes", [0, 3])
def test_whoever_is_told_awake_reaches_the_engine_body_and_all(site: Site, megabytes: int) -> None:
    site.asleep()
    body = json.dumps(asked(NAME, 1, "a" * (megabytes << 20)))
    with concurrent.futures.ThreadPoolExecutor(24) as pool:
        waiting = [pool.submit(site.router.ask, "POST", CHAT, body=body) for _ in range(4 if megabytes else 24)]
        until(lambda: site.waker.held == len(waiting), 10)
        site.awake()
        site.waker.awake.set()
        assert {future.result(30).status for future in waiting} == {200}


def test_who_is_told_awake_while_the_engine_is_not_there_hears_it_in_words(site: Site) -> None:
    site.asleep()
    site.waker.awake.set()
    answer = site.router.post(NAME)
    assert (answer.status, answer.code, answer.headers["retry-after"]) == (503, "model_wakes", "42")
    assert len(site.waker.heard) == 5, "and not again and again"


def test_nobody_says_by_a_header_that_he_streams(site: Site) -> None:
    site.asleep()
    body = json.dumps({**asked(NAME, 1), "stream": False})
    answer = site.router.ask("POST", CHAT, body=body, headers={"x-sparkloom-stream": "true"})
    assert answer.code == "model_wakes" and "x-sparkloom-stream" not in site.waker.heard[0]


def test_a_client_that_leaves_is_noticed_by_the_waker(site: Site) -> None:
    site.asleep()
    connection = site.ask()
    until(lambda: site.waker.held == 1, 10)
    page = site.router.ask("GET", f"/stats/prometheus?filter={HELD_BACK}", port=site.router.terms.metrics_port)
    told = held_back(page.body.decode())
    assert told[LABEL] == 0 and told[f"{LABEL}+waker"] == 1, "as the page reads it"
    connection.close()
    until(lambda: site.waker.left == 1 and site.waker.held == 0, 3)


def test_with_its_waker_away_too_it_is_not_up(site: Site) -> None:
    site.asleep()
    site.waker.down()
    try:
        lost = site.router.post(NAME)  # it is not noticed yet: nobody listens there
        assert (lost.status, lost.code) == (503, "engine_lost") and lost.headers["retry-after"] == "15"
        until(lambda: site.stat("membership_healthy", f"{LABEL}+waker") == 0, 15)
        begun = time.monotonic()
        answer = site.router.post(NAME)
        assert (answer.status, answer.code, answer.headers["retry-after"]) == (503, "model_not_up", "15")
        assert time.monotonic() - begun < 1 and site.state() == "down"
        assert site.router.post("other").status == 200
    finally:
        site.waker.up()
        until(lambda: site.stat("membership_healthy", f"{LABEL}+waker") == 1, 15)


def test_an_engine_is_asked_while_its_waker_is_away(site: Site) -> None:
    site.waker.down()
    try:
        until(lambda: site.stat("membership_healthy", f"{LABEL}+waker") == 0, 15)
        assert site.router.post(NAME).status == 200
    finally:
        site.waker.up()
        until(lambda: site.stat("membership_healthy", f"{LABEL}+waker") == 1, 15)


@pytest.mark.parametrize("megabytes", [0, 3])
def test_a_connection_that_the_engine_refuses_ends_at_the_waker(site: Site, megabytes: int) -> None:
    """It was told to go and is gone, and the router has not noticed: its next look is seconds away."""
    site.engine.down()
    assert site.healthy()
    body = json.dumps({**asked(NAME, 1, "a" * (megabytes << 20)), "stream": False})
    begun = time.monotonic()
    answer = site.router.ask("POST", CHAT, body=body)
    assert (answer.status, answer.code) == (503, "model_wakes")
    assert time.monotonic() - begun < 2 and site.healthy()
    (heard,) = site.waker.heard
    assert len(heard["body"]) >= megabytes << 20


def test_a_request_whose_engine_ends_before_its_first_word_ends_at_the_waker(site: Site) -> None:
    """As when it was on its way while the last of others ended."""
    site.engine.down()
    site.engine.knobs = ("ttft=20", "role=0")
    site.engine.up()
    answers: list[Answer] = []
    asking = threading.Thread(target=lambda: answers.append(site.router.post(NAME, stream=False)))
    try:
        asking.start()
        until(lambda: site.stat("upstream_rq_active") == 1, 10)
        site.engine.down()
        asking.join(20)
        assert [answer.code for answer in answers] == ["model_wakes"] and len(site.waker.heard) == 1
    finally:
        site.engine.knobs = ("ttft=0.05", "rate=60")


def test_a_storm_in_the_moment_of_falling_asleep_ends_at_the_waker(site: Site) -> None:
    """More at once than Envoy would ask again by itself; nobody hears that an engine was lost."""
    over = threading.Event()

    def ask(number: int) -> list[str]:
        found = []
        while not over.is_set():
            answer = site.router.post(NAME, stream=False)
            found.append("whole" if answer.status == 200 else answer.code)
            time.sleep(0.02 if answer.status == 200 else 0.2)
        return found

    with concurrent.futures.ThreadPoolExecutor(24) as pool:
        asking = [pool.submit(ask, number) for number in range(24)]
        time.sleep(2)
        site.engine.down()  # while it works, which its supervisor would not let happen
        time.sleep(1.5)
        site.probe.ready = False
        time.sleep(NOTICED)
        site.engine.up()
        site.probe.ready = True
        until(site.healthy, 15)
        time.sleep(1)
        over.set()
        found = [one for future in asking for one in future.result(30)]
    assert set(found) <= {"whole", "model_wakes"} and found.count("whole") > 48 and "model_wakes" in found
    assert all(future.result()[-1] == "whole" for future in asking)


def test_as_many_wait_at_the_waker_as_may_and_the_next_is_told_so(site: Site) -> None:
    most = 8 + envoy.AT_WAKER
    site.asleep()
    plugs = []
    try:
        for _ in range(most):
            connection = site.router.connect()
            connection.request("POST", CHAT, json.dumps(asked(NAME, 1)), bearer(ALICE))
            plugs.append(connection)
        until(lambda: site.waker.held == most, 10)
        for _ in range(3):
            full = site.router.post(NAME)
            assert (full.status, full.code, full.headers["retry-after"]) == (503, "queue_full", "5")
        assert site.waker.held == most
    finally:
        for plug in plugs:
            plug.close()
    until(lambda: site.waker.held == 0, 20)


def test_it_goes_on_demand_and_back_while_it_streams(made: Site) -> None:
    """The list changed: the routes lead elsewhere, and the engine's cluster is the same."""
    made.awake()
    router = made.router
    groups = router.groups
    connection = made.ask(tokens=300)
    answer = connection.getresponse()
    answer.read1(100)
    try:
        for now in ([replace(groups[0], waker=""), groups[1]], groups):
            router.groups = now
            router.give(PEOPLE)
            until(partial(has_waker, router, bool(now[0].waker)), 10)
            assert router.post(NAME).status == 200
        assert b"[DONE]" in answer.read()
    finally:
        router.groups = groups
        router.give(PEOPLE)
        connection.close()


def test_one_whose_service_is_not_there_is_its_waker_s(made: Site) -> None:
    """Its name is nobody's, so its engine's cluster has no host at all."""
    router, groups = made.router, made.router.groups
    made.waker.awake.clear()
    away = replace(groups[0], name="away", label="", address="away.invalid", aliases=())
    router.groups = [*groups, away]
    router.give(PEOPLE)
    try:
        until(lambda: router.post("away", stream=False).code == "model_wakes", 15)
    finally:
        router.groups = groups
        router.give(PEOPLE)


def has_waker(router: Router, wanted: bool) -> bool:
    page = router.ask("GET", "/stats/prometheus", port=router.terms.metrics_port).body
    return (b"+waker" in page) == wanted
