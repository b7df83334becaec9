"""What the routers are measured with: stand-ins for engines whose every token has a known time, and a plain client."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from router_candidates import Candidate, Model, Person, Site

REPO = Path(__file__).resolve().parents[2]
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


def free(count: int) -> list[int]:
    with contextlib.ExitStack() as kept:
        plugs = [kept.enter_context(socket.socket()) for _ in range(count)]
        for plug in plugs:
            plug.bind(("127.0.0.1", 0))
        return [plug.getsockname()[1] for plug in plugs]


class Engine:
    """A pacing server at a port that it keeps over its deaths."""

    def __init__(self, name: str, port: int, knobs: list[str]) -> None:
        self.name, self.port, self.knobs = name, port, knobs
        self.key = f"sk-own-of-{name}-0123456789"
        self.process: subprocess.Popen[str] | None = None
        self.up()

    def up(self) -> None:
        words = [
            sys.executable,
            "-m",
            "testbed",
            "pacing",
            "--port",
            str(self.port),
            "--model",
            self.name,
            "--key",
            self.key,
        ]
        self.process = subprocess.Popen([*words, *self.knobs], cwd=REPO, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout
        self.process.stdout.readline()

    def down(self) -> None:
        if self.process:
            self.process.kill()
            self.process.wait()

    def truth(self) -> list[dict[str, Any]]:
        """What it sent when, since it was asked last."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        connection.request("DELETE", "/truth", headers={"Authorization": f"Bearer {self.key}"})
        told: list[dict[str, Any]] = json.loads(connection.getresponse().read())
        connection.close()
        return told


class Rig:
    """One router in front of the engines."""

    def __init__(self, candidate: Candidate, engines: dict[str, Engine], folder: Path) -> None:
        self.candidate, self.engines = candidate, engines
        port, metrics, *spare = free(4)
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
    made = {name: Engine(name, port, ENGINES[name]) for name, port in zip(chosen, free(len(chosen)), strict=True)}
    try:
        yield made
    finally:
        for engine in made.values():
            engine.down()
