"""Envoy itself with the files that a site gets, on loopback before stand-in engines."""

from __future__ import annotations

import contextlib
import http.client
import json
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from sparkloom.inputs.client_keys import Key, hashed
from sparkloom.render.router import Group, Terms, envoy
from testbed.make import envoy as built
from testbed.standins.pacing.process import Engine, free_ports

CHAT = "/v1/chat/completions"
ALICE, BOB, CAROL, DAVE, OLD = (
    f"sk-{name}-of-this-test-0123456789" for name in ("alice", "bob", "carol", "dave", "old")
)
PEOPLE = (
    Key(name="alice", hash=hashed(ALICE)),
    Key(name="bob", hash=hashed(BOB), models=["alpha"]),
    Key(name="carol", hash=hashed(CAROL), requests_per_minute=3),
    Key(name="dave", hash=hashed(DAVE), tokens_per_minute=30),
    Key(name="old", hash=hashed(OLD), expires="2026-01-31"),
)


def program() -> str:
    """The release that the product names; its wheel is fetched once."""
    for step in built.steps():
        if not step.done():
            step.act(lambda text: None)
    return str(built.program())


class Answer:
    def __init__(self, answer: http.client.HTTPResponse) -> None:
        self.status, self.body = answer.status, answer.read()
        self.headers = {name.lower(): value for name, value in answer.headers.items()}

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str:
        return str(self.json["error"]["code"])


class Router:
    def __init__(self, folder: Path, groups: Sequence[Group], keys: Sequence[Key]) -> None:
        port, metrics, admin = free_ports(3)
        self.folder = folder / "site"
        self.folder.mkdir()
        self.terms = Terms(
            port=port, metrics_port=metrics, address="127.0.0.1", admin_port=admin, folder=str(self.folder), megabytes=4
        )
        self.groups = groups
        self.give(keys)
        self.log = (folder / "log").open("w+")
        command = [program(), *envoy.argv(self.terms)[1:], "--disable-hot-restart"]
        self.process = subprocess.Popen(command, stdout=self.log, stderr=subprocess.STDOUT)
        limit = time.monotonic() + 60
        while True:
            with contextlib.suppress(OSError, http.client.HTTPException):
                if all(self.post(group.name).status == 200 for group in groups):
                    return
            assert self.process.poll() is None and time.monotonic() < limit, self.said()
            time.sleep(0.2)

    def give(self, keys: Sequence[Key]) -> None:
        """As the kubelet swaps a mounted folder: each file is whole or as before."""
        for name, text in envoy.files(self.groups, keys, self.terms).items():
            aside = self.folder.parent / f"aside-{name}"
            aside.write_text(text)
            aside.rename(self.folder / name)

    def said(self) -> str:
        self.log.flush()
        return Path(self.log.name).read_text()

    def close(self) -> None:
        self.process.terminate()
        self.process.wait(20)
        self.log.close()

    def connect(self, port: int = 0) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", port or self.terms.port, timeout=30)

    def ask(
        self,
        method: str,
        path: str,
        key: str = ALICE,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        port: int = 0,
    ) -> Answer:
        connection = self.connect(port)
        try:
            connection.request(method, path, body, {**bearer(key), **(headers or {})})
            return Answer(connection.getresponse())
        finally:
            connection.close()

    def post(self, model: str, key: str = ALICE, tokens: int = 1, path: str = CHAT, **more: Any) -> Answer:
        return self.ask("POST", path, key, json.dumps({**asked(model, tokens), **more}))

    def get(self, path: str, key: str = ALICE) -> Answer:
        return self.ask("GET", path, key)

    def series(self) -> dict[str, float]:
        page = self.ask("GET", "/metrics", port=self.terms.metrics_port).body.decode()
        lines = [line.rpartition(" ") for line in page.splitlines() if line and not line.startswith("#")]
        return {name: float(value) for name, _, value in lines}


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}", "Content-Type": "application/json"} if key else {}


def asked(model: str, tokens: int, text: str = "hello") -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}], "max_tokens": tokens, "stream": True, "model": model}


@contextlib.contextmanager
def running(
    folder: Path, engines: Mapping[str, Engine], keys: Sequence[Key] = PEOPLE, **more: Mapping[str, Any]
) -> Iterator[Router]:
    """One group an engine; `more` says what differs of a group."""
    groups = []
    for name, engine in engines.items():
        own = folder / f"own-{name}"
        own.write_text(engine.key)
        groups.append(replace(Group(name, "127.0.0.1", engine.port, str(own)), **more.get(name, {})))
    router = Router(folder, groups, keys)
    try:
        yield router
    finally:
        router.close()
