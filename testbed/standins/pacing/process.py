"""A pacing server in a process of its own, for whatever stands before it: it dies and comes back at the same port."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import subprocess
import sys
from typing import Any

from testbed.base.names import REPO


def free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as kept:
        sockets = [kept.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


class Engine:
    """It takes its own key alone."""

    def __init__(self, name: str, *knobs: str) -> None:
        (self.port,) = free_ports(1)
        self.name, self.knobs, self.key = name, knobs, f"sk-own-of-{name}-0123456789"
        self.up()

    def up(self) -> None:
        words = [sys.executable, "-m", "testbed", "pacing", "--port", str(self.port), "--model", self.name]
        command = [*words, "--key", self.key, *self.knobs]
        self.process = subprocess.Popen(command, cwd=REPO, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout and self.process.stdout.readline()

    def down(self) -> None:
        self.process.kill()
        self.process.wait()

    def truth(self) -> list[dict[str, Any]]:
        """What it was asked and sent when, since the last time."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        connection.request("DELETE", "/truth", headers={"Authorization": f"Bearer {self.key}"})
        truth: list[dict[str, Any]] = json.loads(connection.getresponse().read())
        connection.close()
        return truth
