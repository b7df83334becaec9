"""Envoy itself with the files that a site gets, on loopback before stand-in engines."""

from __future__ import annotations

import contextlib
import http.client
import json
import shutil
import ssl
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from sparkloom.inputs.client_keys import Key, hashed
from sparkloom.render.router import Group, Terms, envoy
from testbed.base import steps
from testbed.make import envoy as built
from testbed.standins.pacing.process import Engine, free_ports

CHAT = "/v1/chat/completions"
ALICE, BOB, CAROL, DAVE, OLD = (
    f"sk-{name}-of-this-test-0123456789" for name in ("alice", "bob", "carol", "dave", "old")
)
PEOPLE = (
    Key(name="alice", hash=hashed(ALICE), requests_at_once=1000),
    Key(name="bob", hash=hashed(BOB), models=["alpha"]),
    Key(name="carol", hash=hashed(CAROL), requests_per_minute=3),
    Key(name="dave", hash=hashed(DAVE), tokens_per_minute=30),
    Key(name="old", hash=hashed(OLD), expires="2026-01-31"),
)


def program() -> str:
    """The release that the product names; its wheel is fetched once."""
    steps.quietly(built.steps())
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


def swap(folder: Path, files: Mapping[str, str]) -> None:
    """As the kubelet swaps a mounted Secret: each name leads through `..data`, which leads to another folder."""
    folder.mkdir(exist_ok=True)
    new, before = folder / f"..of_{time.monotonic_ns()}", (folder / "..data").resolve()
    new.mkdir()
    for name, text in files.items():
        (new / name).write_text(text)
    (folder / "..data_tmp").symlink_to(new.name)
    (folder / "..data_tmp").rename(folder / "..data")
    for name in files:
        if not (folder / name).is_symlink():
            (folder / name).symlink_to(f"..data/{name}")
    for stale in folder.iterdir():
        if stale.is_symlink() and not stale.exists():
            stale.unlink()
    if before.name.startswith("..of_"):
        shutil.rmtree(before)


class Router:
    def __init__(
        self,
        folder: Path,
        groups: Sequence[Group],
        keys: Sequence[Key],
        ready: Sequence[str] | None = None,
        trust: str = "",
        **terms: Any,
    ) -> None:
        """`ready`: which models answer before anything begins, all unless it is told; `trust`: whom to trust, where it
        ends TLS."""
        wanted = [group.name for group in groups] if ready is None else ready
        port, metrics, admin, probe, counts, encrypted = free_ports(6)
        self.folder, self.trust = folder / "site", trust
        places = {"port": port, "metrics_port": metrics, "admin_port": admin, "probe_port": probe}
        places |= {"counts_port": counts, "tls_port": encrypted}
        own = {"folder": str(self.folder), "log": str(folder / "access.log"), **places}
        self.terms = Terms(**{"address": "127.0.0.1", "megabytes": 4, **own, **terms})
        self.groups = groups
        self.give(keys)
        self.log = (folder / "log").open("w+")
        command = [program(), *envoy.argv(self.terms)[1:]]
        self.process = subprocess.Popen(command, stdout=self.log, stderr=subprocess.STDOUT)
        limit = time.monotonic() + 60
        while True:
            with contextlib.suppress(OSError, http.client.HTTPException):
                if all(self.post(name).status == 200 for name in wanted):
                    return
            assert self.process.poll() is None and time.monotonic() < limit, self.said()
            time.sleep(0.2)

    def give(self, keys: Sequence[Key]) -> None:
        self.swap(envoy.files(self.groups, keys, self.terms))

    def swap(self, files: Mapping[str, str]) -> None:
        swap(self.folder, files)

    def said(self) -> str:
        self.log.flush()
        return "".join(path.read_text() for path in (Path(self.log.name), Path(self.terms.log)) if path.exists())

    def close(self) -> None:
        self.process.terminate()
        self.process.wait(20)
        self.log.close()

    def connect(self, port: int = 0) -> http.client.HTTPConnection:
        if port or not self.terms.tls:
            return http.client.HTTPConnection(self.terms.address, port or self.terms.port, timeout=30)
        context = ssl.create_default_context(cafile=self.trust)
        return http.client.HTTPSConnection(self.terms.address, self.terms.tls_port, timeout=30, context=context)

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


def peak(router: Router) -> float:
    """MiB that Envoy ever took."""
    status = Path(f"/proc/{router.process.pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def forget_the_peak(router: Router) -> None:
    Path(f"/proc/{router.process.pid}/clear_refs").write_text("5")


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}", "Content-Type": "application/json"} if key else {}


def asked(model: str, tokens: int, text: str = "hello") -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}], "max_tokens": tokens, "stream": True, "model": model}


@contextlib.contextmanager
def running(
    folder: Path,
    engines: Mapping[str, Engine],
    keys: Sequence[Key] = PEOPLE,
    terms: Mapping[str, Any] | None = None,
    **more: Mapping[str, Any],
) -> Iterator[Router]:
    """One group an engine; `more` says what differs of a group."""
    groups = []
    for name, engine in engines.items():
        own = folder / f"own-{name}"
        own.write_text(engine.key)
        groups.append(replace(Group(name, "127.0.0.1", engine.port, str(own)), **more.get(name, {})))
    router = Router(folder, groups, keys, **(terms or {}))
    try:
        yield router
    finally:
        router.close()
