"""An engine that goes away: each client of Envoy itself hears why in JSON, and when to come again."""

from __future__ import annotations

import http.client
import json
import socket
import struct
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.render.router.running import ALICE, CHAT, Router, asked, bearer, running
from tests.until import until

pytestmark = pytest.mark.oracle
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
WORD = b'data: {"choices": [{"delta": {"content": "word"}}]}\n\n'
PIECE = b"%x\r\n%s\r\n" % (len(WORD), WORD)
# What an engine does with a request that came whole, from its last moments.
WAYS = {
    "whole": HEAD + PIECE + b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n",
    "silent": b"",
    "half a head": b"HTTP/1.1 200 OK\r\nContent-Ty",
    "no HTTP": b"Fatal Python error: Aborted\n\n",
    "500 without a body": b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n",
    "503 in plain text": b"HTTP/1.1 503 No\r\nContent-Type: text/plain\r\nContent-Length: 7\r\n\r\nloading",
    "cut": HEAD + PIECE,
}


class Dying:
    """What `running` wants of an engine; `way` is how it answers."""

    key = "sk-own-of-dying-0123456789"

    def __init__(self) -> None:
        self.way = "whole"
        self.listens = socket.create_server(("127.0.0.1", 0))
        self.port = self.listens.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self.listens.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as sent:
            head = b"".join(iter(sent.readline, b"\r\n"))
            length = int((head.lower().partition(b"content-length: ")[2] or b"0").split(b"\r")[0])
            sent.read(length)
            well = head.startswith(b"GET")
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n" if well else WAYS[self.way])
            if self.way == "cut" and not well:
                time.sleep(0.3)  # its first word is on its way to the client
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def down(self) -> None:
        self.listens.shutdown(socket.SHUT_RDWR)
        self.listens.close()


@pytest.fixture
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Router, Dying]]:
    engine = Dying()
    engines: dict[str, Any] = {"alpha": engine}
    with running(tmp_path_factory.mktemp("lost"), engines) as router:
        yield router, engine


def test_every_way_of_dying_is_told_in_json_with_when_to_come_again(site: tuple[Router, Dying]) -> None:
    router, engine = site
    codes = {"500 without a body": (500, "engine_failed"), "503 in plain text": (503, "engine_failed")}
    for way in ("silent", "half a head", "no HTTP", *codes):
        engine.way = way
        answer = router.post("alpha")
        assert answer.headers["content-type"] == "application/json", (way, answer.status, answer.body)
        assert (answer.status, answer.code) == codes.get(way, (503, "engine_lost")), way
        assert "alpha" in answer.json["error"]["message"] and int(answer.headers["retry-after"]) >= 5, way
    engine.down()
    answer = router.post("alpha")
    assert (answer.status, answer.code, answer.headers["retry-after"]) == (503, "engine_lost", "15")
    until(lambda: router.post("alpha").code == "model_not_up", 20)


def test_a_stream_that_is_cut_ends_as_no_whole_one_does(site: tuple[Router, Dying]) -> None:
    """Envoy can write nothing behind it: docs/endpoint.md says so, and SDKs raise what this client does."""
    router, engine = site
    engine.way = "cut"
    connection = router.connect()
    connection.request("POST", CHAT, json.dumps(asked("alpha", 5)), bearer(ALICE))
    response = connection.getresponse()
    with pytest.raises(http.client.IncompleteRead) as told:
        response.read()
    assert response.status == 200 and b"word" in told.value.partial and b"[DONE]" not in told.value.partial
    connection.close()
