"""The smoke answer against a real HTTP server: streamed tokens count, anything else is named."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from sparkloom.onnode import smoke


class Engine(BaseHTTPRequestHandler):
    events: list[dict[str, Any]]
    status = 200
    whole = True
    tail = b""
    asked: dict[str, Any]

    def log_message(self, *args: Any) -> None: ...

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps({"data": [{"id": "m"}]}).encode())

    def do_POST(self) -> None:
        type(self).asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(self.status)
        self.end_headers()
        for event in self.events:
            self.wfile.write(f"data: {json.dumps(event)}\n\n".encode())
        self.wfile.write(self.tail)
        if self.whole:
            self.wfile.write(b"data: [DONE]\n\n")


@pytest.fixture
def engine() -> Iterator[tuple[type[Engine], Any]]:
    handler = type("Handler", (Engine,), {"events": []})
    server = HTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield handler, lambda: http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=5)
    server.shutdown()


def delta(**said: str) -> dict[str, Any]:
    return {"choices": [{"delta": said}]}


def test_text_reasoning_and_usage(engine: tuple[type[Engine], Any]) -> None:
    handler, connect = engine
    handler.events = [
        delta(role="assistant"),
        delta(reasoning_content="hm"),
        delta(content="Be"),
        delta(content="cause"),
    ]
    handler.events += [{"choices": [], "usage": {"completion_tokens": 7}}]
    seen: list[str] = []
    answer = smoke.ask(connect, seen.append)
    assert (answer.model, answer.text, answer.reasoning, answer.tokens) == ("m", "Because", "hm", 7)
    assert "".join(seen) == "[thinking] hm\n[answer] Because"
    assert handler.asked["stream"] is True and handler.asked["model"] == "m"


@pytest.mark.parametrize(
    ("events", "status", "said"),
    [
        ([], 200, "without a single token"),
        ([delta(role="assistant")], 200, "without a single token"),
        ([], 503, "answered 503"),
        ([delta(content="x"), {"error": {"message": "CUDA error"}}], 200, "CUDA error"),
        ([delta(content="x"), {"object": "error", "message": "EngineDeadError"}], 200, "1 chunks: EngineDeadError"),
        ([delta(content="x"), {"choices": [{"delta": {}, "finish_reason": "abort"}]}], 200, "finish_reason abort"),
    ],
)
def test_no_answer_is_named(engine: tuple[type[Engine], Any], events: list[Any], status: int, said: str) -> None:
    handler, connect = engine
    handler.events, handler.status = events, status
    with pytest.raises(smoke.NoAnswer, match=said):
        smoke.ask(connect, lambda text: None)


def test_a_stream_without_its_end_is_no_answer(engine: tuple[type[Engine], Any]) -> None:
    handler, connect = engine
    handler.events, handler.whole = [delta(content="Be"), delta(content="cause")], False
    with pytest.raises(smoke.NoAnswer, match=r"cut after 2 events: it ended without \[DONE\]"):
        smoke.ask(connect, lambda text: None)


def test_an_answer_without_thinking_has_no_heads(engine: tuple[type[Engine], Any]) -> None:
    handler, connect = engine
    handler.events = [delta(content="Be"), delta(content="cause")]
    seen: list[str] = []
    smoke.ask(connect, seen.append)
    assert seen == ["Be", "cause"]


@pytest.mark.parametrize(
    ("tail", "said"),
    [
        (b'data: {"choices": [{"del', "cut after 1 events: within an event"),
        (b'event: error\ndata: {"message": "rank 2 is gone"}\n\ndata: [DONE]\n\n', "rank 2 is gone"),
        (b'error: {"code": 500, "message": "ggml broke"}\n\ndata: [DONE]\n\n', "ggml broke"),
    ],
)
def test_how_streams_end_when_a_rank_dies(engine: tuple[type[Engine], Any], tail: bytes, said: str) -> None:
    """On the old code the first was a traceback of json, and the others were answers: [DONE] followed."""
    handler, connect = engine
    handler.events, handler.tail, handler.whole = [delta(content="x")], tail, False
    with pytest.raises(smoke.NoAnswer, match=said):
        smoke.ask(connect, lambda text: None)


def test_a_closed_port_is_named() -> None:
    with pytest.raises(smoke.NoAnswer, match="no answer from the engine's port"):
        smoke.ask(lambda: http.client.HTTPConnection("127.0.0.1", 9, timeout=1), lambda text: None)
