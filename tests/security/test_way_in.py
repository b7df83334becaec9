"""What one key-holder can do to all others at the way in: Envoy itself, as its pod has it (docs/threat-model.md)."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from sparkloom.inputs.client_keys import Key, hashed
from testbed.standins.pacing.process import Engine
from tests.render.router.running import (
    ALICE,
    BOB,
    CAROL,
    CHAT,
    PEOPLE,
    Router,
    asked,
    bearer,
    forget_the_peak,
    peak,
    running,
)  # fmt: skip
from tests.security.dialects import PROMPT, Dialects
from tests.until import until

pytestmark = pytest.mark.oracle
MALLORY = "sk-mallory-of-this-test-0123456789"
METERED = "sk-metered-of-this-test-0123456789"
MIB = 1 << 20
TERMS = {"megabytes": 100, "memory": 1024}  # as a site has them
WORST_DELAY = 0.5  # seconds of another person's request on a busy machine; quiet: docs/threat-model.md


@pytest.fixture(scope="module")
def router(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Router]:
    engines: dict[str, Any] = {"alpha": Engine("alpha", "ttft=0.01", "rate=100"), "dialects": Dialects()}
    engines["flood"] = Engine("flood", "ttft=0.01", "rate=20000", "per_chunk=200")
    people = [*PEOPLE, Key(name="mallory", hash=hashed(MALLORY), models=["alpha", "flood"], requests_per_minute=60)]
    people.append(Key(name="metered", hash=hashed(METERED), tokens_per_minute=1000))
    folder, places = tmp_path_factory.mktemp("way-in"), {"at_once": 8, "waiting": 32}
    with running(folder, engines, people, TERMS, alpha=places, dialects=places) as made:
        yield made
    for engine in engines.values():
        engine.down()


@contextlib.contextmanager
def watched(router: Router) -> Iterator[list[float]]:
    """How long somebody else's requests take meanwhile."""
    took: list[float] = []
    over = threading.Event()

    def ask() -> None:
        while not over.is_set():
            begun = time.monotonic()
            assert router.get("/v1/models", BOB).status == 200
            took.append(time.monotonic() - begun)
            time.sleep(0.02)

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        yield took
    finally:
        over.set()
        asking.join()


def keys_of(size: int) -> bytes:
    """As many keys as a body of that size can hold."""
    count = size // 11
    return b"{" + b",".join(b'"%07x":1' % number for number in range(count)) + b',"model":"alpha"}'


BODIES = {
    "keys": keys_of(60 * MIB),
    "brackets": b'{"a":' + b"[" * (30 * MIB) + b"]" * (29 * MIB),
    "quotes": b'{"a":[' + b'"",' * (20 * MIB) + b'""],"model":"alpha"}',
    "backslashes": b'{"a":"' + b"\\\\" * (29 * MIB) + b'","model":"alpha"}',
    "one key": b'{"' + b"k" * (60 * MIB) + b'":1,"model":"alpha"}',
}


@pytest.mark.parametrize("kind", BODIES)
def test_one_body_is_no_wall_for_others(router: Router, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    """60 MiB of keys took 1.4 GiB and the pod's life; 24 MiB held everybody for 17 s."""
    router.post("alpha", ALICE)
    forget_the_peak(router)
    before = peak(router)
    with watched(router) as took, contextlib.suppress(ConnectionError):
        router.ask("POST", CHAT, MALLORY, BODIES[kind])
    after = peak(router)
    with capsys.disabled():
        print(f"\n{kind}: +{after - before:.0f} MiB, others' worst {max(took) * 1000:.0f} ms of {len(took)}")
    assert router.process.poll() is None
    assert after - before <= 128
    assert max(took) <= WORST_DELAY


def head(key: str, length: int) -> bytes:
    return (
        f"POST {CHAT} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\nContent-Length: {length}\r\n\r\n".encode()
    )


@pytest.mark.parametrize("begins", [b"{", b"x", b""])
def test_a_body_that_is_too_long_is_told_so_whatever_it_is(router: Router, begins: bytes) -> None:
    """Red when all that no engine would read was thrown away, uncounted: 400."""
    body = begins + b" " * (101 * MIB)
    answer = router.ask("POST", CHAT, ALICE, body)
    assert answer.status == 413


def silent(router: Router, key: str, megabytes: int) -> socket.socket:
    """An upload that says how long it will be, and sends nothing."""
    made = socket.create_connection(("127.0.0.1", router.terms.port), 20)
    head = (
        f"POST {CHAT} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\nContent-Length: {megabytes * MIB}\r\n\r\n"
    )
    made.sendall(head.encode() + b'{"model": "alpha", ')
    return made


def test_silent_uploads_hold_no_room(router: Router) -> None:
    held = [silent(router, MALLORY, 100), silent(router, MALLORY, 70)]
    try:
        time.sleep(0.5)
        body = json.dumps(asked("alpha", 1, "x" * 1_000_000))
        assert router.ask("POST", CHAT, BOB, body).status == 200
    finally:
        for one in held:
            one.close()


@pytest.mark.parametrize("first", [0, 64 << 10])
def test_one_key_holds_half_of_the_room(router: Router, first: int) -> None:
    """Uploads that really come, all but their last byte. Red before where the first piece was as long as one that is
    let in without a look: it counted as one that moves, with no length, so a key's bodies had no bound."""
    body = json.dumps(asked("alpha", 1, "x" * (90 * MIB))).encode()
    held = [socket.create_connection(("127.0.0.1", router.terms.port), 20) for _ in range(3)]
    try:
        for one in held:
            with contextlib.suppress(ConnectionError):
                for piece in (head(MALLORY, len(body)), body[:first], body[first:-1]):
                    one.sendall(piece)
                    time.sleep(0.3)
        assert router.ask("POST", CHAT, BOB, json.dumps(asked("alpha", 1, "x" * MIB))).status == 200
        assert held[2].recv(100).startswith(b"HTTP/1.1 503")
    finally:
        for one in held:
            one.close()


def test_a_limit_is_looked_at_before_the_body(router: Router) -> None:
    while router.post("alpha", CAROL).status != 429:
        pass
    with silent(router, CAROL, 50) as made:
        made.settimeout(5)
        assert made.recv(100).startswith(b"HTTP/1.1 429")


def test_the_room_is_full_of_what_came_and_says_so(router: Router) -> None:
    """Of twelve bodies at once, each of 60 MiB, some are told so; Envoy lives, and somebody else is answered."""
    forget_the_peak(router)
    body = json.dumps(asked("alpha", 1, "x" * (60 * MIB))).encode()
    answers: list[int] = []

    def send() -> None:
        try:
            answers.append(router.ask("POST", CHAT, ALICE, body).status)
        except OSError:
            answers.append(0)

    crowd = [threading.Thread(target=send) for _ in range(12)]
    for one in crowd:
        one.start()
    time.sleep(0.3)
    assert router.get("/v1/models", BOB).status == 200
    for one in crowd:
        one.join(60)
    assert router.process.poll() is None and peak(router) < 1024
    assert set(answers) <= {200, 503, 0} and 0 < answers.count(200) < 12, answers  # 0: told while it was sending


WAYS: dict[str, tuple[str, dict[str, Any]]] = {
    "completions, asked not to tell": ("/v1/completions", {"stream_options": {"include_usage": False}}),
    "chat, asked not to tell": (CHAT, {"stream_options": {"include_usage": False}}),
    "completions": ("/v1/completions", {}),
    "messages": ("/v1/messages", {}),
    "responses": ("/v1/responses", {}),
    "chat": (CHAT, {}),
}


def used(router: Router) -> dict[str, float]:
    labels = '{person="alice",model="dialects"}'
    series = router.series()
    return {kind: series.get(f"sparkloom_router_{kind}_tokens_total{labels}", 0) for kind in ("prompt", "completion")}


@pytest.mark.parametrize("way", WAYS)
def test_every_stream_is_counted_to_its_end(router: Router, way: str) -> None:
    path, more = WAYS[way]
    before = used(router)
    answer = router.post("dialects", ALICE, 12, path, **more)
    assert answer.status == 200
    wanted = more.get("stream_options")
    assert b'"completion_tokens"' not in answer.body or (wanted and wanted["include_usage"])
    after = used(router)
    assert {kind: after[kind] - before[kind] for kind in after} == {"prompt": PROMPT, "completion": 12}


@pytest.mark.parametrize("way", WAYS)
def test_a_stream_that_is_left_early_is_counted(router: Router, way: str) -> None:
    path, more = WAYS[way]
    before = used(router)
    body = json.dumps({**asked("dialects", 400, "x" * 2000), **more})
    connection = router.connect()
    connection.request("POST", path, body, bearer(ALICE))
    answer = connection.getresponse()
    heard = b""
    while heard.count(b"word") < 10:
        heard += answer.read1(4096)
    assert connection.sock
    connection.sock.close()
    connection.close()
    time.sleep(0.5)
    after = used(router)
    assert 10 <= after["completion"] - before["completion"] <= 60
    estimate = PROMPT if way == "messages" else 2000 // 4
    assert estimate <= after["prompt"] - before["prompt"] <= estimate + 100


@pytest.mark.parametrize("way", ["completions, asked not to tell", "chat"])
def test_leaving_early_is_within_the_limit(router: Router, way: str) -> None:
    """1,000 tokens a minute: two prompts of 500 are enough."""
    path, more = WAYS[way]
    body = json.dumps({**asked("dialects", 400, "x" * 2000), **more})
    statuses = []
    for _ in range(4):
        connection = router.connect()
        connection.request("POST", path, body, bearer(METERED))
        answer = connection.getresponse()
        statuses.append(answer.status)
        answer.read(60)
        connection.close()
        time.sleep(0.2)
    assert 429 in statuses


def unread(router: Router, key: str) -> http.client.HTTPConnection:
    made = router.connect()
    made.request("POST", CHAT, json.dumps(asked("alpha", 100_000)), bearer(key))
    return made


def test_one_key_has_half_of_a_model_s_places(router: Router) -> None:
    """40 streams that nobody read held a model; everybody else heard queue_full."""
    streams: list[http.client.HTTPConnection] = []
    try:
        for _ in range(45):
            streams.append(unread(router, MALLORY))
        time.sleep(1)
        refused = router.post("alpha", MALLORY)
        assert refused.status == 429 and refused.code == "too_many_at_once" and refused.headers["retry-after"]
        assert "20 requests at once" in refused.json["error"]["message"]
    finally:
        for one in streams:
            one.close()
    until(lambda: router.post("alpha", MALLORY).status == 200, 70)  # what it left is free again


def test_a_stream_that_nobody_reads_ends_within_a_minute(router: Router) -> None:
    """It had 8,000 s, and its place at the engine as long."""
    body = json.dumps(asked("flood", 400_000_000)).encode()

    def active() -> float:
        page = router.ask("GET", "/stats/prometheus", port=router.terms.metrics_port).body.decode()
        line = 'envoy_cluster_upstream_rq_active{envoy_cluster_name="flood"} '
        return float(page.partition(line)[2].partition("\n")[0])

    with socket.socket() as made:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        made.connect(("127.0.0.1", router.terms.port))
        made.sendall(head(MALLORY, len(body)) + body)
        until(lambda: active() == 1, 10)
        begun = time.monotonic()
        until(lambda: active() == 0, 100)
        assert time.monotonic() - begun > 30
