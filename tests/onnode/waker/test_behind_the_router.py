"""Behind the real Envoy with a site's files: a client's request wakes a group, and idle it sleeps again."""

from __future__ import annotations

import contextlib
import hashlib
import json
import time
from pathlib import Path

import pytest

from sparkloom.render.router import Group
from tests.onnode.waker.loopback import ENGINE, SUPERVISOR, Site, site
from tests.render.router import running
from tests.render.router.running import ALICE, PEOPLE, Router
from tests.until import until

NAME = "org--chat-1.5"  # Envoy cuts a name with a dot


class Behind(Router):
    """It has no engine to wait for."""

    def __init__(self, folder: Path, made: Site, port: int) -> None:
        model = made.models[NAME]
        key = folder / "own"
        key.write_text("sk-own-of-the-engine")
        group = Group(
            NAME, model.address, ENGINE, str(key), health_port=SUPERVISOR, health_path="/ready",
            waker=f"127.0.0.1:{port}", label="org--chat-15",
        )  # fmt: skip
        self.groups_of_it = group
        super().__init__(folder, [], PEOPLE)

    def sleeps(self) -> bool:
        with contextlib.suppress(OSError):
            return b'"sleeps"' in self.get("/v1/models").body
        return False

    def give_group(self) -> None:
        self.groups = [self.groups_of_it]
        self.give(PEOPLE)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def test_a_request_wakes_it_through_the_router_and_it_sleeps_again(folder: Path) -> None:
    with site(folder, NAME, load=3.0) as made:
        model = made.models[NAME]
        proof = hashlib.sha256(b"sk-own-of-the-engine").hexdigest()
        told = {"idle_seconds": 8, "label": "org--chat-15", "proof": proof}
        made.tell(**{NAME: told})
        made.routers[0].listening.close()
        waker = made.waker()
        router = Behind(folder, made, waker.port)
        try:
            made.routers[0].address = "127.0.0.1"
            waker.process.kill()
            made.figures = router.terms.metrics_port
            waker = made.waker(waker.port)
            router.give_group()
            until(router.sleeps, 30)
            answer = router.post(NAME, ALICE)
            assert answer.status == 200 and b"[DONE]" in answer.body, answer.body
            asked, content = model.asked[0]
            assert asked["authorization"] == "Bearer sk-own-of-the-engine" and json.loads(content)["stream"]
            until(lambda: '"up"' in router.get("/v1/models").body.decode(), 30)
            begun, before = time.monotonic(), len(model.asked)
            while time.monotonic() - begun < 14:  # straight to the engine, and seen by the router's figures alone
                assert router.post(NAME, ALICE).status == 200
                time.sleep(1)
            assert made.cluster.up(NAME) == 2 and len(model.asked) > before + 5
            until(lambda: waker.state(NAME) == "asleep", 40)
            assert router.post(NAME, ALICE).status == 200  # and again, whatever the router still thinks of the engine
        finally:
            router.close()


def test_who_does_not_stream_is_told_when_to_come_again(folder: Path) -> None:
    with site(folder, NAME, load=60.0) as made:
        made.tell(**{NAME: {"label": "org--chat-15"}})
        waker = made.waker()
        router = Behind(folder, made, waker.port)
        try:
            router.give_group()
            until(router.sleeps, 30)
            body = json.dumps({**running.asked(NAME, 1), "stream": False})
            answer = router.ask("POST", running.CHAT, ALICE, body)
            assert (answer.status, answer.code, answer.headers["retry-after"]) == (503, "model_wakes", "60")
        finally:
            router.close()
