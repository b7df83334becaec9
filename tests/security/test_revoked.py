"""A key that is taken away opens nothing more, and what it had opened ends: the router asks the rank's supervisor."""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import socket
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from sparkloom.inputs.client_keys import Key, hashed
from sparkloom.onnode import key_table
from sparkloom.onnode.rank import answers, probes
from sparkloom.onnode.rank.plan import GroupPlan
from sparkloom.onnode.rank.status_log import StatusLog
from sparkloom.render.router import envoy
from testbed.standins.pacing.process import Engine
from tests.onnode.rank.ranks import free_port
from tests.render.router.running import ALICE, BOB, CHAT, PEOPLE, Router, asked, bearer, running
from tests.until import until

pytestmark = pytest.mark.oracle
LONG = 100_000  # tokens
KNOWN = [key for key in PEOPLE if key.name == "alice"]


@pytest.fixture
def engine() -> Iterator[Engine]:
    made = Engine("alpha", "ttft=0.01", "rate=50")
    yield made
    made.down()


@pytest.fixture
def supervisor(engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """Its probes' port; the engine has its key as a pod's has."""
    key = tmp_path / "key"
    key.write_text(engine.key)
    monkeypatch.setenv("SPARKLOOM_KEY_FILE", str(key))
    members = [{"rank": 0, "node": "spark1", "address": "127.0.0.1"}]
    told = {"profile": "p", "engine": "sglang", "release": "0", "image": "i", "port": engine.port, "members": members}
    log = StatusLog(GroupPlan.of({**told, "run": str(tmp_path)}), 0)
    log.status |= {"serving": True, "beat": time.time() + 3600}
    port = free_port()
    probes.start(log, "127.0.0.1", port)
    until(lambda: answers.listens("127.0.0.1", port), 10)  # its thread opens the port
    return port


@pytest.fixture
def router(engine: Engine, supervisor: int, tmp_path: Path) -> Iterator[Router]:
    placed = {"health_port": supervisor, "health_path": "/ready"}
    with running(tmp_path, {"alpha": engine}, PEOPLE, alpha=placed) as made:
        yield made


def streams(router: Router, key: str) -> http.client.HTTPResponse:
    connection = router.connect()
    connection.request("POST", CHAT, json.dumps(asked("alpha", LONG)), bearer(key))
    answer = connection.getresponse()
    assert answer.status == 200 and answer.read(20)
    return answer


def ends_after(answer: http.client.HTTPResponse, limit: float) -> float:
    begun = time.monotonic()
    with contextlib.suppress(http.client.HTTPException, OSError):
        while time.monotonic() - begun < limit and answer.read(200):
            pass
    return time.monotonic() - begun


def at_engine(router: Router) -> float:
    page = router.ask("GET", "/stats/prometheus", port=router.terms.metrics_port).body.decode()
    line = 'envoy_cluster_upstream_rq_active{envoy_cluster_name="alpha"} '
    return float(page.partition(line)[2].partition("\n")[0])


def test_a_revoked_key_s_stream_ends_and_another_s_goes_on(router: Router) -> None:
    his, hers = streams(router, BOB), streams(router, ALICE)
    assert at_engine(router) == 2
    router.give(KNOWN)
    assert ends_after(his, 20) < 5
    until(lambda: at_engine(router) == 1, 5)
    assert hers.read(200), "somebody else's"
    assert router.post("alpha", BOB).status == 401 and "x-sparkloom-from" not in hers.headers


def test_a_stream_ends_with_its_key(router: Router) -> None:
    today = datetime.now(tz=UTC).date()
    files = envoy.files(
        router.groups, [*KNOWN, Key(name="bob", hash=hashed(BOB), expires=today.isoformat())], router.terms
    )
    soon = re.sub(r"ends=\d+", f"ends={int(time.time()) + 3}", files[key_table.FILE])
    router.swap({**files, key_table.FILE: soon})
    his = streams(router, BOB)
    assert 1 < ends_after(his, 20) < 8


def test_where_the_supervisor_cannot_nothing_more_is_passed_on(router: Router, tmp_path: Path) -> None:
    his = streams(router, BOB)
    (tmp_path / "key").write_text("sk-of-another-engine")  # what the router shows is refused
    router.give(KNOWN)
    time.sleep(4)
    raw = his.fp.raw._sock  # type: ignore[union-attr]
    raw.settimeout(0.2)
    with contextlib.suppress(OSError):
        while raw.recv(1 << 20):  # what came before
            pass
    raw.settimeout(2)
    with pytest.raises(TimeoutError):
        raw.recv(1)


def test_who_has_no_key_of_the_engine_cuts_nobody_off(engine: Engine, supervisor: int) -> None:
    with socket.create_connection(("127.0.0.1", engine.port)) as client:
        mine = "{}:{}".format(*client.getsockname())

        def cut(key: str, whom: str = mine) -> int:
            asking = http.client.HTTPConnection("127.0.0.1", supervisor, timeout=20)
            with contextlib.closing(asking):
                asking.request("DELETE", f"/clients/{whom}", headers=bearer(key))
                return asking.getresponse().status

        assert [cut(""), cut("sk-else"), cut(engine.key, "127.0.0.1:1"), cut(engine.key, "nonsense")] == [
            401,
            401,
            404,
            404,
        ]
        client.settimeout(1)
        with pytest.raises(TimeoutError):
            client.recv(1)
        assert cut(engine.key) == 200 and client.recv(1) == b""
