"""An engine whose other ranks lend their memory: they stand before rank 0's starts, and all restart as one."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from sparkloom.onnode.rank import answers, engine
from sparkloom.onnode.rank.main import build
from sparkloom.onnode.rank.plan import GroupPlan
from tests.onnode.rank.ranks import Ranks, free_port


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Ranks]:
    ranks = Ranks(tmp_path, 2)
    ranks.plan |= {"lends": free_port(), "schedulers": []}
    ranks.environment |= {"FAKE_LENDS": str(ranks.plan["lends"])}
    yield ranks
    ranks.end()


def test_rank_0_starts_its_engine_when_the_others_lend_and_a_dead_lender_restarts_both(pair: Ranks) -> None:
    """llama-server before its rpc-server ended with status 139; after it, it lives on until the next request."""
    pair.start()
    pair.wait(pair.serving)
    assert pair.status(0)["epoch"] == 1 and "status 139" not in pair.log(0)
    assert "lenders: rank 1 on spark2 does not listen yet at 127.0.0.12:" in pair.log(0)
    before = [pair.status(n)["engine"] for n in range(2)]
    os.kill(before[1], signal.SIGKILL)
    pair.wait(lambda: pair.serving(epoch=2))
    assert not set(before) & {pair.status(n)["engine"] for n in range(2)}
    assert "rank 1 on spark2: the engine was ended by SIGKILL" in pair.log(0)


def test_a_lender_that_never_listens_is_named(pair: Ranks) -> None:
    pair.plan["lends"] = free_port()
    pair.plan["limits"] |= {"lend": 0.5}
    pair.start()
    pair.wait(lambda: "failed: rank 1 on spark2 did not listen at 127.0.0.12:" in pair.log(0))
    assert all(not pair.status(n)["serving"] for n in range(2))


def test_the_name_that_this_image_has_is_started(tmp_path: Path) -> None:
    """Builds of one engine call a program by two names."""
    here, gone = sys.executable, str(tmp_path / "rpc-server")
    assert engine.found([gone, "--port", "1"], ((gone, here),)) == [here, "--port", "1"]
    assert engine.found([gone], (("/app/other", here),)) == [gone]
    assert engine.found([gone], ((gone, gone + "2"),)) == [gone], "what is named in the refusal is the first"


def test_two_builds_of_a_program_without_python_differ(tmp_path: Path) -> None:
    """Ranks of two images are refused; llama.cpp's libraries stand beside its programs and pip knows none of them."""
    for place, text in (("one", "a"), ("two", "ab")):
        (tmp_path / place).mkdir()
        (tmp_path / place / "libggml.so").write_text(text)
    one, same, two = (build(str(tmp_path / p / name)) for p, name in (("one", "x"), ("one", "y"), ("two", "x")))
    assert one == same != two


def test_counters_behind_the_key_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """llama-server keeps /metrics behind its key; a page that cannot be read leaves a busy engine looking dead."""

    class Guarded(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            good = self.headers["Authorization"] == "Bearer s3cret"
            self.send_response(200 if good else 401)
            self.end_headers()
            self.wfile.write(b"llamacpp:n_decode_total 7\n" if good else b"no")

        def log_message(self, *_: object) -> None:
            pass

    (tmp_path / "key").write_text("s3cret\n")
    monkeypatch.setenv(answers.KEY_FILE, str(tmp_path / "key"))
    server = ThreadingHTTPServer(("127.0.0.1", 0), Guarded)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    order = GroupPlan.of({"profile": "p", "engine": "llamacpp", "release": "b8399", "image": "i", "members": [],
                      "port": server.server_port, "metrics": "/metrics"})  # fmt: skip
    assert answers.page(order) == "llamacpp:n_decode_total 7\n"
    server.shutdown()
