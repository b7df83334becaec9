"""What the routers are measured with: stand-ins for engines whose every token has a known time, and a plain client."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from router_candidates import Candidate, Model, Person, Site

from testbed.standins.pacing.process import Engine, free_ports

CHAT = "/v1/chat/completions"
ALICE = Person("alice", "sk-alice-0123456789-0123456789-01234567")
BOB = Person("bob", "sk-bob-0123456789-0123456789-0123456789", models=("alpha",))
CAROL = Person("carol", "sk-carol-0123456789-0123456789-01234567", requests=3)
DAVE = Person("dave", "sk-dave-0123456789-0123456789-012345678", tokens=20)
ERIN = Person("erin", "sk-erin-0123456789-0123456789-012345678")  # comes later
# name -> how its stand-in conducts itself
ENGINES = {
    "alpha": [], "beta": ["keep_alive=2"], "narrow": ["ttft=3"], "fragile": ["cut_after=3"],
}  # fmt: skip


class Rig:
    """One router in front of the engines."""

    def __init__(self, candidate: Candidate, engines: dict[str, Engine], folder: Path) -> None:
        self.candidate, self.engines = candidate, engines
        port, metrics, *spare = free_ports(4)
        narrow = {"narrow": {"at_once": 2, "waiting": 2}}
        models = [Model(e.name, e.port, e.key, **narrow.get(e.name, {})) for e in engines.values()]
        (folder / "site").mkdir(parents=True)
        self.site = Site(port, metrics, models, [ALICE, BOB, CAROL, DAVE], folder / "site", spare)
        self.log = (folder / "log").open("w+")
        env = {**os.environ, **candidate.env}
        command = candidate.start(self.site)
        self.process = subprocess.Popen(command, stdout=self.log, stderr=subprocess.STDOUT, env=env, cwd=folder)
        self._wait()
        if candidate.settled:
            candidate.settled(self.site)

    def _wait(self) -> None:
        until = time.monotonic() + 90
        while time.monotonic() < until:
            if self.process.poll() is not None:
                break
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.site.port), 0.2):
                time.sleep(0.5)
                return
            time.sleep(0.1)
        raise RuntimeError(f"{self.candidate.name} does not listen: {self.said()}")

    def ready(self, model: str, seconds: float = 40) -> bool:
        """Until the router has found the engine healthy."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            with contextlib.suppress(OSError, http.client.HTTPException):
                if self.ask(model, tokens=1)[0] == 200:
                    return True
            time.sleep(0.3)
        return False

    def said(self) -> str:
        self.log.seek(0)
        return self.log.read()[-1500:]

    def close(self) -> None:
        self.process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(10)
        self.process.kill()
        self.process.wait()
        self.log.close()

    def people(self, *more: Person) -> None:
        self.site = replace(self.site, people=[*self.site.people, *more])
        assert self.candidate.people
        self.candidate.people(self.site)

    def open(
        self,
        model: str,
        who: Person = ALICE,
        tokens: int = 4,
        *,
        stream: bool = True,
        body: bytes = b"",
        path: str = CHAT,
    ) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        """The connection, and its answer from its headers on."""
        connection = http.client.HTTPConnection("127.0.0.1", self.site.port, timeout=40)
        head = self.head(model, who)
        connection.request("POST", path, body or asked(model, tokens, stream=stream), head)
        return connection, connection.getresponse()

    def head(self, model: str, who: Person = ALICE) -> dict[str, str]:
        key = {} if self.candidate.passes else {"Authorization": f"Bearer {who.key}"}
        return {"Content-Type": "application/json", "X-Model": model, **key}

    def ask(self, model: str, who: Person = ALICE, tokens: int = 4, **more: Any) -> tuple[int, dict[str, str], bytes]:
        connection, answer = self.open(model, who, tokens, **more)
        try:
            return answer.status, {k.lower(): v for k, v in answer.headers.items()}, answer.read()
        finally:
            connection.close()

    def get(self, path: str, who: Person | None = ALICE) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.site.port, timeout=20)
        connection.request("GET", path, headers=self.head("", who) if who else {})
        answer = connection.getresponse()
        try:
            return answer.status, answer.read()
        finally:
            connection.close()


def asked(model: str, tokens: int, text: str = "hello", *, stream: bool = True, last: bool = False) -> bytes:
    """A request; `last`: the model is named behind the text, as OpenAI's client writes it."""
    rest = {"messages": [{"role": "user", "content": text}], "max_tokens": tokens, "stream": stream}
    named = {"model": model}
    return json.dumps({**rest, **named} if last else {**named, **rest}).encode()


@contextlib.contextmanager
def engines(*names: str) -> Iterator[dict[str, Engine]]:
    chosen = names or tuple(ENGINES)
    made = {name: Engine(name, *ENGINES[name]) for name in chosen}
    try:
        yield made
    finally:
        for engine in made.values():
            engine.down()
