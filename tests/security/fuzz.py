"""Hostile messages by chance, the same for the same seed, and a watch over the supervisor that is told them."""

from __future__ import annotations

import contextlib
import http.client
import json
import random
import socket
import threading
import time
from collections.abc import Iterator
from types import TracebackType
from typing import Any

from sparkloom.onnode.rank import proof
from tests.onnode.rank.ranks import Ranks
from tests.security import attacker

TOGETHER = 48  # connections at a time
KEYS = ("offer", "lost", "own", "epoch", "agreed", "works", "leave", "beat", "failures", "row", "refused", "welcome",
        "round", "down", "start", "stop", "present", "waiting", "config", "build", "instance")  # fmt: skip
WORDS = (b"GET", b"POST", b"HEAD", b"get", b"", b"\0", b"\xff\xfe", b"PRI", b"GET\t", b"CONNECT", b"G" * 300)
PATHS = (b"/live", b"/ready", b"/started", b"/key", b"/keys", b"//key", b"/key?x", b"/..%2fkey", b"http://x/key", b"*",
         b"/" + b"a" * 900, b"/\x1b[2J", b"/live\r", b"", b"/ live")  # fmt: skip
ENDS = (b"HTTP/1.1", b"HTTP/1.0", b"HTTP/9.9", b"", b"HTTP/1.1 x", b"\xc3\x28")
FIELDS = (b"Host: x", b"Authorization: Bearer ", b"authorization:Bearer x", b"Authorization", b": :", b"\0: \0",
          b"Content-Length: 99999999999999", b"Content-Length: -1", b"Transfer-Encoding: chunked", b" folded",
          b"X: " + b"y" * 1500, b"Expect: 100-continue", b"Connection: keep-alive", b"\x1b]52;c;x\x07: 1")  # fmt: skip


class Watch:
    """Asks a supervisor that is attacked, and one beside it that is not: what both wait for is the machine's load."""

    def __init__(self, attacked: Ranks, beside: Ranks, rank: int = 0) -> None:
        self.attacked, self.beside = attacked, beside
        self.pid = attacked.processes[rank].pid
        self.worst = {"attacked": 0.0, "beside": 0.0}
        self.before = self.most = attacker.resident(self.pid)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._over.wait(0.05):
            for name, ranks in (("beside", self.beside), ("attacked", self.attacked)):
                begun = time.monotonic()
                with contextlib.suppress(OSError, http.client.HTTPException):
                    connection = http.client.HTTPConnection(
                        attacker.HEAD, ranks.plan["probe_port"], timeout=20, source_address=("127.0.0.1", 0)
                    )
                    with contextlib.closing(connection):
                        connection.request("GET", "/live")
                        assert connection.getresponse().status == 200
                self.worst[name] = max(self.worst[name], time.monotonic() - begun)
            self.most = max(self.most, attacker.resident(self.pid))

    def judge(self) -> str:
        assert self.attacked.processes[0].poll() is None, self.attacked.log(0)[-3000:]
        assert "Traceback" not in self.attacked.log(0), self.attacked.log(0)[-3000:]
        assert self.worst["attacked"] <= 1 + self.worst["beside"], self.worst
        assert self.most <= self.before + 24, f"{self.before} MiB before, {self.most} MiB at most"
        assert self.attacked.ask(0, "/live")[0] == 200
        return f"{self.before} MiB before, {self.most} at most; slowest answer {self.worst}"


def noise(chance: random.Random, most: int) -> bytes:
    return chance.randbytes(chance.randrange(1, most))


def spoilt(chance: random.Random, text: bytes) -> bytes:
    """A few bytes of it changed, left out, doubled."""
    data = bytearray(text)
    for _ in range(chance.randrange(1, 4)):
        at = chance.randrange(len(data) + 1)
        data[at : at + chance.randrange(3)] = noise(chance, 4) if chance.random() < 0.7 else b""
    return bytes(data)


def question(chance: random.Random) -> bytes:
    """For the supervisor's HTTP; most have an end, so that an answer is due."""
    line = b" ".join(chance.choice(words) for words in (WORDS, PATHS, ENDS))
    fields = [chance.choice(FIELDS) for _ in range(chance.randrange(5))]
    text = b"\r\n".join([line, *fields, b"", b""])
    kind = chance.random()
    if kind < 0.2:
        return spoilt(chance, text)
    if kind < 0.25:
        return noise(chance, 3000)
    return text + (b"" if kind < 0.9 else noise(chance, 200))


def hello(chance: random.Random) -> bytes:
    """For the control port, by somebody without the secret."""
    good = b'{"rank": 1, "nonce": "%s"}\n' % chance.randbytes(32).hex().encode()
    kind = chance.random()
    if kind < 0.3:
        return good + spoilt(chance, chance.randbytes(32).hex().encode() + b" {}\n")
    if kind < 0.6:
        return spoilt(chance, good)
    if kind < 0.7:
        return b"[" * chance.randrange(5000) + b"\n"
    if kind < 0.8:
        return json.dumps({"rank": 1, "config": "c0ffee", "build": value(chance), "epoch": value(chance)}).encode()
    return noise(chance, 400) + b"\n"


def value(chance: random.Random, deep: int = 0) -> Any:
    plain: list[Any] = [None, True, False, 0, 1, -1, 2**31, 10**40, 1e308, float("nan"), "", "x", "\x1b[2J", "9" * 5000,
                        "\ud800", [], {}]  # fmt: skip
    if deep < 3 and chance.random() < 0.2:
        inner = [value(chance, deep + 1) for _ in range(chance.randrange(4))]
        return inner if chance.random() < 0.5 else {str(number): each for number, each in enumerate(inner)}
    return chance.choice(plain)


def word(chance: random.Random) -> bytes:
    """For the control port, by a rank that knows the secret and means harm."""
    if chance.random() < 0.02:
        return chance.choice([b"[" * 100_000, b"1" * 5000, b"null", b"\xff", b'{"a": 1', b"{}" * 9, b'"x"'])
    said = {chance.choice(KEYS): value(chance) for _ in range(chance.randrange(5))}
    if chance.random() < 0.3:
        said |= {"epoch": chance.randrange(3), "lost": value(chance), "own": True, "offer": chance.randrange(9)}
    if chance.random() < 0.9:
        said.pop("leave", None)  # else the group is always on its way out
    return json.dumps(said).encode()


def batch(address: str, port: int, source: str, messages: list[bytes]) -> list[bytes]:
    """Each over a connection of its own, all at once; what was answered to each."""
    plugs, heard = [], []
    for message in messages:
        plug = socket.socket()
        with contextlib.suppress(OSError):
            plug.settimeout(10)
            plug.bind((source, 0))
            plug.connect((address, port))
            plug.sendall(message)
            plug.shutdown(socket.SHUT_WR)
        plugs.append(plug)
    for plug in plugs:
        heard.append(attacker.answered(plug))
        plug.close()
    return heard


def batches(messages: Iterator[bytes], count: int) -> Iterator[list[bytes]]:
    for done in range(0, count, TOGETHER):
        yield [next(messages) for _ in range(min(TOGETHER, count - done))]


def proved(ranks: Ranks) -> tuple[socket.socket, proof.Session]:
    """As a rank does it."""
    secret, mine = proof.secret(ranks.plan["secret"]), proof.nonce()
    plug = attacker.knock(ranks, attacker.MEMBER)
    plug.sendall(b'{"rank": 1, "nonce": "%s"}\n' % mine.hex().encode())
    found = proof.ANSWER.fullmatch(plug.makefile("rb").readline().strip())
    assert found, "rank 0 shows no secret"
    session = proof.Session.of(secret, 1, mine, bytes.fromhex(found[1].decode()), proof.FOLLOWER)
    plug.sendall(session.seal(b"{}") + b"\n")
    return plug, session
