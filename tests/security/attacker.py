"""What somebody on the rail can do with a socket: knock from an address, listen at one, stand in between."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.onnode.rank.ranks import Ranks

HEAD, MEMBER, STRANGER, BETWEEN = "127.0.0.11", "127.0.0.12", "127.0.0.99", "127.0.0.21"


def knock(ranks: Ranks, source: str, seconds: float = 5.0) -> socket.socket:
    """A connection to rank 0's control port from that address."""
    return socket.create_connection((HEAD, ranks.plan["control_port"]), seconds, (source, 0))


def answered(plug: socket.socket, said: bytes = b"") -> bytes:
    """All that comes until the other end closes, or is silent for the socket's time."""
    heard = b""
    with contextlib.suppress(OSError):
        if said:
            plug.sendall(said)
        while piece := plug.recv(65536):
            heard += piece
    return heard


def ask(ranks: Ranks, source: str, said: bytes, seconds: float = 1.0) -> bytes:
    try:
        with knock(ranks, source, seconds) as plug:
            return answered(plug, said)
    except OSError:
        return b""


def learnt(pattern: bytes, heard: bytes) -> str:
    found = re.search(pattern, heard)
    return found[1].decode() if found else "unknown"


def undisturbed(ranks: Ranks, seconds: float) -> None:
    """Serves in its first epoch all the time, with the same engines."""
    engines = [ranks.status(n)["engine"] for n in range(ranks.count)]
    limit = time.monotonic() + seconds
    while time.monotonic() < limit:
        now = [ranks.status(n) for n in range(ranks.count)]
        assert all(s["serving"] and s["epoch"] == 1 for s in now), ranks.log(0)[-2000:]
        assert [s["engine"] for s in now] == engines
        time.sleep(0.1)


def resident(pid: int) -> int:
    """MiB of memory that this process holds."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") >> 20


def descriptors(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


class Between:
    """Stands between rank 1 and rank 0, as somebody does who answers for rank 0's address on the rail.

    `up` and `down` get each line of a direction and give the lines that go on.
    """

    def __init__(self, ranks: Ranks) -> None:
        self.ranks = ranks
        self.up: Callable[[bytes], list[bytes]] = lambda line: [line]
        self.down: Callable[[bytes], list[bytes]] = lambda line: [line]
        self.said: list[list[bytes]] = []  # by rank 1, one list for each connection
        self.told: list[list[bytes]] = []
        self._listener = socket.create_server((BETWEEN, ranks.plan["control_port"]))
        threading.Thread(target=self._serve, daemon=True).start()

    def start(self) -> None:
        """Both ranks; rank 1 is led astray."""
        self.ranks.start(0)
        members = self.ranks.plan["members"]
        self.ranks.plan["members"] = [{**members[0], "address": BETWEEN}, *members[1:]]
        self.ranks.start(1)
        self.ranks.plan["members"] = members

    def end(self) -> None:
        self._listener.close()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                try:
                    far = knock(self.ranks, MEMBER)
                except OSError:
                    near.close()
                    continue
                far.settimeout(None)
                self.said.append([])
                self.told.append([])
                for ends in ((near, far, "up", self.said[-1]), (far, near, "down", self.told[-1])):
                    threading.Thread(target=self._pass, args=ends, daemon=True).start()

    def _pass(self, one: socket.socket, other: socket.socket, way: str, kept: list[bytes]) -> None:
        with contextlib.suppress(OSError), one.makefile("rb") as lines:
            for line in lines:
                kept.append(line)
                for each in getattr(self, way)(line):
                    other.sendall(each)
        for plug in (one, other):
            with contextlib.suppress(OSError):
                plug.shutdown(socket.SHUT_RDWR)


class Impostor:
    """Listens at rank 0's address and says what it likes to whoever comes."""

    def __init__(self, ranks: Ranks, says: Callable[[socket.socket, Any], None]) -> None:
        self.heard: list[bytes] = []
        self.says = says
        self._listener = socket.create_server((HEAD, ranks.plan["control_port"]))
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                plug, _ = self._listener.accept()
                threading.Thread(target=self._one, args=(plug,), daemon=True).start()

    def _one(self, plug: socket.socket) -> None:
        with contextlib.suppress(OSError), plug, plug.makefile("rb") as lines:
            self.heard.append(first := lines.readline())
            self.says(plug, first)
            self.heard += list(lines)

    def end(self) -> None:
        self._listener.close()
