"""What somebody with a key for one model can try at the way in: each abuse is a function of its own process.

`python -m tests.security.abuses NAME PORT SECONDS` goes on for so long, on loopback, and prints what it heard.
`test_abuses.py` runs each beside somebody else's requests and writes docs/reference/abuses.md.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

MALLORY, ENDED = "sk-mallory-of-this-test-0123456789", "sk-ended-of-this-test-0123456789"
CHAT, MODELS, MIB = "/v1/chat/completions", "/v1/models", 1 << 20
HEAVY = 2  # of the longest bodies at a time


class Way:
    """To the router, for so long; counts the statuses that it heard."""

    def __init__(self, port: int, seconds: float) -> None:
        self.port, self.end, self.heard = port, time.monotonic() + seconds, Counter[str]()

    @property
    def open(self) -> bool:
        return time.monotonic() < self.end

    @contextlib.contextmanager
    def plug(self, receives: int = 0) -> Iterator[socket.socket]:
        """A connection; what goes wrong with it is counted, as the router may end it."""
        try:
            with socket.socket() as made:
                if receives:
                    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receives)
                made.settimeout(5)
                made.connect(("127.0.0.1", self.port))
                yield made
        except TimeoutError:
            self.heard["silence"] += 1
        except OSError:
            self.heard["closed"] += 1

    def note(self, answer: bytes) -> None:
        for part in answer.split(b"HTTP/1.1 ")[1:]:
            self.heard[part[:3].decode(errors="replace")] += 1

    def once(self, said: bytes | Iterable[bytes], answers: int = 1) -> None:
        with self.plug() as made:
            try:
                for piece in [said] if isinstance(said, bytes) else said:
                    made.sendall(piece)
            finally:
                heard = b""
                while heard.count(b"HTTP/1.1 ") < answers and (piece := made.recv(65536)):
                    heard += piece
                self.note(heard)

    def again(self, make: Callable[[int], bytes | Iterable[bytes]], at_once: int = 8, answers: int = 1) -> None:
        """As fast as answers come, from several connections."""
        numbers = itertools.count()

        def go() -> None:
            while True:
                self.once(make(next(numbers)), answers)
                if not self.open:
                    return

        self.crowd(go, at_once)

    def crowd(self, go: Callable[[], None], count: int) -> None:
        threads = [threading.Thread(target=go) for _ in range(count)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()

    def held(self, said: bytes, count: int, drip: bytes = b"", receives: int = 0) -> None:
        """So many connections that stay; a byte a second where something drips."""
        with contextlib.ExitStack() as kept:
            plugs = []
            for _ in range(count):
                made = kept.enter_context(self.plug(receives))
                made.sendall(said)
                plugs.append(made)
            while self.open:
                time.sleep(1)
                for made in plugs if drip else []:
                    with contextlib.suppress(OSError):
                        made.sendall(drip)
            for made in plugs:
                made.setblocking(False)
                try:
                    self.note(made.recv(200))
                except BlockingIOError:
                    self.heard["held"] += 1
                except OSError:
                    self.heard["closed"] += 1


def head(
    path: str = CHAT, key: str = MALLORY, method: str = "POST", more: str = "", length: int | None = None
) -> bytes:
    size = f"Content-Length: {length}\r\n" if length is not None else ""
    return f"{method} {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n{size}{more}\r\n".encode()


def post(model: str = "alpha", tokens: int = 1, path: str = CHAT, key: str = MALLORY, more: str = "") -> bytes:
    asked = {"messages": [{"role": "user", "content": "x"}], "max_tokens": tokens, "stream": True, "model": model}
    body = json.dumps(asked).encode()
    return head(path, key, more=more, length=len(body)) + body


def get(path: str = MODELS, key: str = MALLORY, more: str = "") -> bytes:
    return head(path, key, "GET", more)


def whole(make: Callable[[], bytes]) -> Callable[[Way], None]:
    def run(way: Way) -> None:
        body = make()
        said = [head(length=len(body)), body]
        way.again(lambda _: said, HEAVY)

    return run


def keys(size: int = 60 * MIB) -> bytes:
    some = b"".join(b'"%07x":1,' % number for number in range(10_000))
    return b"{" + some * (size // len(some)) + b'"model":"alpha"}'


def chunks(piece: bytes, count: int) -> list[bytes]:
    one = b"%x\r\n%s\r\n" % (len(piece), piece)
    begun = b'2\r\n{"\r\n'
    return [head(more="Transfer-Encoding: chunked\r\n") + begun, *([one * (MIB // len(one))] * count), b"0\r\n\r\n"]


def left(way: Way) -> None:
    def go() -> None:
        while way.open:
            with way.plug() as made:
                made.sendall(post(tokens=1000))
                way.note(made.recv(200))

    way.crowd(go, 16)


def storm(way: Way) -> None:
    def go() -> None:
        while way.open:
            with way.plug():
                way.heard["connected"] += 1

    way.crowd(go, 8)


TRICKS = (
    "/health", "/metrics", "/v1/..%2fhealth", "/v1/models/../../health", "//health", "/v1/%2e%2e/metrics", "/V1/models",
    "/v1/models/..%5c..%5chealth", "/page/act/key-add", "/v1/chat/completions/", "/v1/chat/completions;x=/health",
    "http://127.0.0.1:9901/quitquitquit", "/stats/prometheus", "/page/../metrics", "/v1/load_lora_adapter", "/%00",
)  # fmt: skip
SPOOFS = (
    "X-Forwarded-For: 127.0.0.1\r\n", "X-Envoy-Internal: true\r\n", "X-Envoy-Original-Path: /health\r\n",
    "x-sparkloom-group: beta\r\n", "x-sparkloom-from: 127.0.0.1:1\r\n", "X-Envoy-Upstream-Rq-Timeout-Ms: 1\r\n",
    "X-Envoy-Retry-On: 5xx\r\nX-Envoy-Max-Retries: 1000\r\n", "X-HTTP-Method-Override: DELETE\r\n",
)  # fmt: skip
UPGRADES = (
    "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x3JJHMbDL1EzLkh9GBhXDw==\r\n",
    "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n",
)


class Abuse(NamedTuple):
    what: str
    run: Callable[[Way], None]


HTTP_2 = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0" * 100
SMUGGLED = head(more="Transfer-Encoding: chunked\r\n", length=4) + b"0\r\n\r\n" + get("/health")

ABUSES = {
    "keys": Abuse("bodies of 60 MiB of keys", whole(keys)),
    "brackets": Abuse("bodies of 59 MiB of brackets", whole(lambda: b'{"a":' + b"[" * (30 * MIB) + b"]" * (29 * MIB))),
    "quotes": Abuse(
        "bodies of 60 MiB of quotes", whole(lambda: b'{"a":[' + b'"",' * (20 * MIB) + b'""],"model":"alpha"}')
    ),
    "text": Abuse(
        "bodies of 90 MiB that are right", whole(lambda: b'{"model":"alpha","a":"' + b"x" * (90 * MIB) + b'"}')
    ),
    "chunks": Abuse("bodies in chunks of one byte", lambda w: w.again(lambda _: chunks(b" ", 8), HEAVY)),
    "bomb": Abuse("150 MiB in chunks, the limit is 100", lambda w: w.again(lambda _: chunks(b" " * 65000, 150), 1)),
    "silent": Abuse("200 silent uploads of 100 MiB", lambda w: w.held(head(length=100 * MIB), 200)),
    "slow upload": Abuse(
        "200 uploads, a byte a second", lambda w: w.held(head(length=MIB) + b'{"model": "', 200, b"a")
    ),
    "slow header": Abuse(
        "200 headers, a byte a second", lambda w: w.held(b"GET /v1/models HTTP/1.1\r\nX-A: ", 200, b"a")
    ),
    "slow read": Abuse(
        "100 fast streams that nobody reads", lambda w: w.held(post("flood", 10**7), 100, receives=4096)
    ),
    "left": Abuse("streams left at their first byte", left),
    "parallel": Abuse("100 streams at once; 20 are the key's share", lambda w: w.held(post(tokens=100_000), 100)),
    "connections": Abuse("1,000 connections that say nothing", lambda w: w.held(b"", 1000)),
    "storm": Abuse("connections that close at once", storm),
    "pipelining": Abuse("200 requests in one piece", lambda w: w.again(lambda _: get() * 200, 4, 200)),
    "header": Abuse("headers of 200 KiB", lambda w: w.again(lambda _: get(more=f"X-A: {'a' * 200_000}\r\n"))),
    "many headers": Abuse("1,000 headers", lambda w: w.again(lambda _: get(more="X-A: a\r\n" * 1000))),
    "names": Abuse("another model's name each time", lambda w: w.again(lambda n: post(f"model-{n}-{'x' * 150}"))),
    "guesses": Abuse("another key each time", lambda w: w.again(lambda n: get(key=f"sk-{n}-{os.getpid()}"))),
    "ended": Abuse("a key that has ended", lambda w: w.again(lambda _: post(key=ENDED))),
    "count tokens": Abuse(
        "/v1/messages/count_tokens", lambda w: w.again(lambda _: post(path="/v1/messages/count_tokens"))
    ),
    "models": Abuse("/v1/models", lambda w: w.again(lambda _: get())),
    "http/2": Abuse(
        "HTTP/2's preface",
        lambda w: w.again(lambda _: HTTP_2),
    ),
    "upgrade": Abuse("upgrades to WebSocket and h2c", lambda w: w.again(lambda n: get(more=UPGRADES[n % 2]))),
    "paths": Abuse("16 ways to closed paths", lambda w: w.again(lambda n: get(TRICKS[n % len(TRICKS)]))),
    "spoof": Abuse(
        "headers of proxies (X-Forwarded-For, ...)",
        lambda w: w.again(lambda n: post(more=SPOOFS[n % len(SPOOFS)])),
    ),
    "ranges": Abuse(
        "thousands of ranges", lambda w: w.again(lambda _: get(more=f"Range: bytes={'0-1,' * 5000}9-\r\n"))
    ),
    "trailers": Abuse(
        "trailers of 60 KiB behind a body in chunks",
        lambda w: w.again(lambda _: [*chunks(b" ", 0)[:1], b"0\r\n" + b"X-A: aaaaaaaa\r\n" * 4000 + b"\r\n"]),
    ),
    "smuggled": Abuse(
        "two lengths at once",
        lambda w: w.again(lambda _: SMUGGLED),
    ),
    "garbage": Abuse("bytes that are no HTTP", lambda w: w.again(lambda _: os.urandom(2000) + b"\r\n\r\n")),
}


def main(name: str, port: str, seconds: str) -> None:
    way = Way(int(port), float(seconds))
    ABUSES[name].run(way)
    print(json.dumps(dict(way.heard.most_common())))


if __name__ == "__main__":
    main(*sys.argv[1:])
