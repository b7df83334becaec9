"""The router and the waker together: Envoy itself, the waker's own program, a cluster's API and engines on loopback."""

from __future__ import annotations

import concurrent.futures
import json
import os
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from http.client import HTTPException
from pathlib import Path

import pytest

from sparkloom.render.router import Group
from tests.onnode.waker.loopback import ENGINE, FIGURES, SUPERVISOR, Site
from tests.render.router.running import ALICE, CHAT, PEOPLE, Router, asked, bearer
from tests.until import until

pytestmark = pytest.mark.oracle

IDLE = 3  # seconds
ROUNDS = 8 if os.environ.get("SPARKLOOM_MORE") else 4  # of the storm


class Pair:
    """Two groups on demand, in places of their own unless it is told otherwise; `ready`: who was woken at the start."""

    def __init__(self, folder: Path, ready: Sequence[str] | None = None, **more: dict[str, object]) -> None:
        self.site = Site(folder, ["alpha", "beta"], load=0.7)
        self.site.tell(alpha={"idle_seconds": IDLE, **more.get("alpha", {})}, beta={**more.get("beta", {})})
        self.waker = self.site.waker()
        self.site.routers[0].listening.close()  # Envoy is there in its place
        key = folder / "own-key"
        key.write_text("sk-own-key-of-engines")
        groups = [
            Group(name, one.address, ENGINE, str(key), health_port=SUPERVISOR, health_path="/ready",
                  waker=f"127.0.0.1:{self.waker.port}")
            for name, one in self.site.models.items()
        ]  # fmt: skip
        self.router = Router(folder, groups, PEOPLE, ready, address=self.site.routers[0].address, metrics_port=FIGURES)

    def close(self) -> None:
        self.router.close()
        self.site.close()

    def asleep(self, name: str = "alpha") -> bool:
        return self.site.cluster.up(name) == 0 and self.site.cluster.gone(name)

    def stream(self, name: str = "alpha") -> str:
        """What became of it, to its end."""
        connection = self.router.connect()
        try:
            connection.request("POST", CHAT, json.dumps(asked(name, 3)), bearer(ALICE))
            answer = connection.getresponse()
            text = answer.read().decode()
        except (OSError, HTTPException) as error:
            return type(error).__name__
        finally:
            connection.close()
        if answer.status != 200:
            return str(json.loads(text)["error"]["code"])
        return "whole" if text.count('data: {"token"') == 3 and "[DONE]" in text else text[-300:]


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    made = Pair(tmp_path_factory.mktemp("woken"))
    yield made
    made.close()


def test_it_was_woken_by_the_first_request_and_sleeps_when_nobody_asks(pair: Pair) -> None:
    (first, *_) = pair.site.models["alpha"].asked
    assert first[0]["authorization"] == "Bearer sk-own-key-of-engines", "each engine's own"
    until(pair.asleep, IDLE + 20)
    assert pair.site.cluster.up("beta"), "which may idle for an hour"


def test_a_request_wakes_it_streams_and_the_next_goes_to_it_straight(pair: Pair) -> None:
    until(pair.asleep, 30)
    until(lambda: pair.router.get("/v1/models/alpha").json["state"] == "sleeps", 20)
    connection = pair.router.connect()
    connection.request("POST", CHAT, json.dumps(asked("alpha", 3)), bearer(ALICE))
    answer = connection.getresponse()
    assert answer.status == 200 and b"[DONE]" in answer.read()
    connection.close()
    over = threading.Event()

    def keep_it_awake() -> None:
        while not over.wait(1):
            pair.stream()

    busy = threading.Thread(target=keep_it_awake)
    busy.start()
    try:
        until(lambda: pair.router.get("/v1/models/alpha").json["state"] == "up", 20)
        heard = pair.site.models["alpha"].asked[-1][0]
        until(lambda: pair.site.models["alpha"].asked[-1][0].get("x-request-id") != heard.get("x-request-id"), 10)
        time.sleep(2 * IDLE)
        assert pair.site.cluster.up("alpha") == 2, "in use"
    finally:
        over.set()
        busy.join(20)


def test_who_does_not_stream_hears_when_to_come_again(pair: Pair) -> None:
    until(pair.asleep, 30)
    pair.site.models["alpha"].load = 8.0
    try:
        answer = pair.router.post("alpha", stream=False)
        assert (answer.status, answer.code) == (503, "model_wakes") and int(answer.headers["retry-after"]) >= 5
    finally:
        pair.site.models["alpha"].load = 0.7
    until(lambda: pair.stream() == "whole", 30)


def test_a_storm_across_the_moment_of_falling_asleep_loses_nothing(pair: Pair) -> None:
    """Sixteen streams each time, begun within two seconds after its sets want no pod any more (its engine drains, or is
    gone and the router has not noticed), or around the moment when they would."""
    dice, slept, found = random.Random(7), 0, Counter[str]()
    until(lambda: pair.stream() == "whole", 30)
    used, took = time.monotonic(), 0.0
    with concurrent.futures.ThreadPoolExecutor(16) as pool:

        def later(seconds: float) -> str:
            time.sleep(seconds)
            return pair.stream()

        for number in range(ROUNDS):
            if number % 2 and took:
                time.sleep(max(0.0, used + took - 1 - time.monotonic()))  # it is about to
            else:
                until(lambda: not pair.site.cluster.up("alpha"), 30)
                took = time.monotonic() - used
            offsets = [dice.uniform(0, 2) for _ in range(16)]
            found.update(pool.map(later, offsets))
            used = time.monotonic()
            slept = sum(not replicas for _, replicas in pair.site.cluster.changes) // 2
    print(found, f"{slept} times asleep")
    assert found == {"whole": ROUNDS * 16} and slept >= ROUNDS // 2


def test_a_mate_in_use_stays_and_one_that_idles_gives_way(tmp_path: Path) -> None:
    turn = {"idle_seconds": IDLE, "turn": "desk"}
    pair = Pair(tmp_path, ready=["alpha"], alpha=turn, beta=turn)
    try:
        refused = pair.router.post("beta")
        assert (refused.status, refused.code) == (503, "model_in_turn")
        assert "alpha" in refused.json["error"]["message"] and 1 <= int(refused.headers["retry-after"]) <= 60
        assert pair.stream() == "whole"
        until(lambda: pair.stream("beta") == "whole", 40)
        assert pair.asleep() and pair.site.cluster.up("beta") == 2
    finally:
        pair.close()
