"""Nodes' stores as real processes on loopback addresses, and those who would harm them."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import socket
import socketserver
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from sparkloom.render import pack

MODEL = "org/name"
COMMIT = "c0" * 20
SECRET = "5ec7e7" * 10
# The packed program as a node has it; only the folder of its state is another one for each.
START = """
import json, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from sparkloom.onnode.weights import main
print(json.dumps(main.start(json.load(sys.stdin), Path(sys.argv[2]))))
"""


@dataclass
class Node:
    """One node's folder, and its transfer as a process of its own."""

    root: Path
    program: Path
    address: str = "127.0.0.1"
    port: int = 0

    def __post_init__(self) -> None:
        self.root.mkdir()
        self.run, self.store = self.root / "run", self.root / "hub"
        with socket.socket() as probe:
            probe.bind((self.address, 0))
            self.port = self.port or int(probe.getsockname()[1])

    def spec(self, source: dict[str, Any], **more: Any) -> dict[str, Any]:
        want = {"id": MODEL, "revision": COMMIT, "include": ["*"], "exclude": []}
        return {
            "job": "job", "run": "run", "secret": SECRET, "store": str(self.store), "models": [want], "source": source,
            "listen": [self.address], "peers": [], "port": self.port, "connections": 3, "downstream": False, **more,
        }  # fmt: skip

    def as_source(self) -> dict[str, Any]:
        return {"kind": "peer", "name": self.root.name, "addresses": [self.address], "port": self.port, "run": "run"}

    def start(self, spec: dict[str, Any]) -> dict[str, Any]:
        words = [sys.executable, "-c", START, str(self.program), str(self.run)]
        ran = subprocess.run(words, input=json.dumps(spec), capture_output=True, text=True, check=True)
        return dict(json.loads(ran.stdout))

    def status(self) -> dict[str, Any]:
        try:
            return dict(json.loads((self.run / "status.json").read_text()))
        except (FileNotFoundError, ValueError):
            return {"state": "none", "cause": ""}

    def until(self, *states: str, seconds: float = 20) -> dict[str, Any]:
        end = time.monotonic() + seconds
        while (status := self.status())["state"] not in states and time.monotonic() < end:
            time.sleep(0.02)
        assert status["state"] in states, (status, (self.run / "log").read_text())
        return status

    def listed(self) -> dict[str, str]:
        status = self.until("moving", "done", "failed")
        assert status["manifests"], status
        return dict(status["manifests"])

    def stop(self) -> None:
        with suppress(ProcessLookupError, KeyError):
            os.kill(self.status()["pid"], signal.SIGKILL)

    def ask(self, command: str, **asked: Any) -> Any:
        """The packed program, as the controller asks it over SSH."""
        data = json.dumps({"store": str(self.store), **asked})
        ran = subprocess.run([sys.executable, self.program, command], input=data, capture_output=True, text=True)
        return json.loads(ran.stdout)

    def check(self, *, deep: bool = False) -> dict[str, Any]:
        told = self.ask("check", models=[{"id": MODEL, "revision": COMMIT}], deep=deep)
        return dict(told["answer"][0])


@contextmanager
def nodes(folder: Path, *names: str) -> Iterator[list[Node]]:
    program = pack.program("weights").keep(folder / "program")
    made = [Node(folder / name, program) for name in names]
    try:
        yield made
    finally:
        for node in made:
            node.stop()


def checkpoint(folder: Path, **files: bytes) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    given = {"config.json": b"{}", "model.safetensors": b"weights" * 1000, "modeling_name.py": b"# good\n", **files}
    for name, content in given.items():
        (folder / name).write_bytes(content)
    return folder


def entry(path: str, content: bytes, blob: str = "") -> dict[str, Any]:
    sha256 = hashlib.sha256(content).hexdigest()
    return {"path": path, "size": len(content), "blob": blob or sha256, "sha256": sha256}


def outside(folder: Path, *inside: Path) -> set[str]:
    """Everything below a folder but what lies in a store or in a program's own state."""
    return {
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if not any(path == place or path.is_relative_to(place) for place in inside)
    }


class Impostor(socketserver.ThreadingTCPServer):
    """The node before, in an enemy's hands. `secret` is the run's where it is a node of this run."""

    daemon_threads, allow_reuse_address = True, True

    def __init__(self, manifest: bytes, content: bytes = b"", secret: str = SECRET, failed: bytes = b"") -> None:
        super().__init__(("127.0.0.1", 0), _Impostor)
        self.manifest, self.content, self.secret, self.failed = manifest, content, secret.encode(), failed
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    def as_source(self) -> dict[str, Any]:
        port = self.server_address[1]
        return {"kind": "peer", "name": "spark1", "addresses": ["127.0.0.1"], "port": port, "run": "run"}

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A node that hangs up is what is hoped for."""

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()


class _Impostor(socketserver.BaseRequestHandler):
    server: Impostor

    def handle(self) -> None:
        from sparkloom.onnode.weights import wire

        mine, lines = wire.nonce(), wire.Lines(self.request)
        self.request.sendall(f"{wire.GREETING} {mine}\n".encode())
        while asked := wire.ASKED.fullmatch(lines.read(10)):
            theirs, _, request = asked.groups()
            word, body, sha256 = self._answer(request)
            sha256 = sha256 or hashlib.sha256(body).hexdigest()
            said = (mine, theirs, request, word, str(len(body)), sha256)
            proof = wire.proof(self.server.secret, "giver", *said)
            self.request.sendall(f"{word} {len(body)} {sha256} {proof}\n".encode() + body)

    def _answer(self, request: str) -> tuple[str, bytes, str]:
        if self.server.failed:
            return "failed", self.server.failed, ""
        if request.startswith("manifest"):
            return "manifest", self.server.manifest, ""
        return "file", self.server.content[int(request.split()[2]) :], "-"


@dataclass
class Asked:
    host: str
    path: str
    token: str


@dataclass
class Rogue:
    """A hub that lists what it likes and leads where it likes. One server for each host that it has."""

    sha: Any = COMMIT
    rows: list[dict[str, Any]] = field(default_factory=list)
    contents: dict[str, bytes] = field(default_factory=dict)
    leads_to: dict[str, str] = field(default_factory=dict)  # path -> where its answer redirects to
    next_page: str = ""
    asked: list[Asked] = field(default_factory=list)

    @contextmanager
    def at(self, *hosts: str) -> Iterator[list[str]]:
        servers = []
        for host in hosts:
            server = ThreadingHTTPServer((host, 0), _Rogue)
            server.daemon_threads, server.rogue = True, self  # type: ignore[attr-defined]
            threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
            servers.append(server)
        try:
            yield [f"http://{server.server_address[0]!s}:{server.server_address[1]}" for server in servers]
        finally:
            for server in servers:
                server.shutdown()
                server.server_close()

    def file(self, path: str, content: bytes, **more: Any) -> None:
        oid = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
        self.rows.append({"type": "file", "oid": oid, "size": len(content), "path": path, **more})
        self.contents[path] = content

    def large(self, path: str, content: bytes) -> None:
        lfs = {"oid": hashlib.sha256(content).hexdigest(), "size": len(content), "pointerSize": 130}
        self.file(path, content, lfs=lfs)


class _Rogue(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        """Silent."""

    def do_GET(self) -> None:
        rogue: Rogue = self.server.rogue  # type: ignore[attr-defined]
        path = urlsplit(self.path).path
        host = str(self.headers["Host"])
        rogue.asked.append(Asked(host, path, str(self.headers.get("Authorization") or "")))
        name = path.partition(f"/resolve/{COMMIT}/")[2] or path.rpartition("/")[2]
        if path in rogue.leads_to:
            return self._send(302, b"", {"Location": rogue.leads_to[path]})
        if "/tree/" in path:
            more = {"Link": f'<{rogue.next_page}>; rel="next"'} if rogue.next_page else {}
            return self._send(200, json.dumps(rogue.rows).encode(), more)
        if path == "/more":
            return self._send(200, b"[]", {})
        if path.startswith("/api/models/"):
            info = {"_id": "1", "id": MODEL, "modelId": MODEL, "sha": rogue.sha, "private": False, "tags": []}
            return self._send(200, json.dumps({**info, "siblings": []}).encode(), {})
        self._send(200, rogue.contents.get(name, b""), {})

    def _send(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for key, value in {**headers, "Content-Length": str(len(body)), "Content-Type": "application/json"}.items():
            self.send_header(key, value)
        self.end_headers()
        self.wfile.write(body)
