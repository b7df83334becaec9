"""The side that the next node asks: the manifest and each file by number, plain HTTP with ranges, while they arrive."""

from __future__ import annotations

import errno
import json
import os
import re
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from sparkloom.onnode.weights import check
from sparkloom.onnode.weights.job import Job
from sparkloom.onnode.weights.layout import StoreError

SLICE = 8 << 20
HELD = 10.0  # seconds to wait for the port
PATIENCE = 10.0  # how long an answer may stand still before its connection is given up


class Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, address: tuple[str, int], job: Job) -> None:
        super().__init__(address, Handler)
        self.job = job

    def handle_error(self, request: Any, client_address: Any) -> None:
        """The next node went away; it comes back for the rest."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def log_message(self, format: str, *args: Any) -> None:
        """Progress is in the status file."""

    def do_GET(self) -> None:
        job = self.server.job
        match = re.fullmatch(r"/file/(\d+)", self.path)
        if self.path == "/manifest":
            job.listed.wait(PATIENCE)
        if job.cause and self.headers.get("X-Run", job.spec["run"]) != job.spec["run"]:
            return self._json(503, {"cause": "this is what an earlier run left; the new one is about to take over"})
        if job.cause:
            return self._json(409, {"cause": job.cause})
        if self.path == "/released":
            job.released.set()
            return self._json(200, {})
        if not job.listed.is_set():
            return self._json(503, {"cause": "the manifest is not known yet"})
        if self.path == "/manifest":
            return self._json(200, {"job": job.spec["job"], "snapshots": [s.as_dict() for s in job.snapshots]})
        if match is None or int(match[1]) >= len(job.intakes):
            return self._json(404, {"cause": f"nothing here is called {self.path}"})
        self._file(int(match[1]))

    def _file(self, number: int) -> None:
        intake = self.server.job.intakes[number]
        generation, size = intake.generation, intake.entry.size
        asked = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range") or "bytes=0-")
        position = int(asked[1]) if asked else 0
        if intake.available(position, generation, PATIENCE) <= position < size:
            return self._json(503, {"cause": f"{intake.entry.path} has not come so far yet"})
        try:
            source = os.open(intake.part if not intake.done else intake.final, os.O_RDONLY)
        except FileNotFoundError:
            source = os.open(intake.final, os.O_RDONLY)
        try:
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {position}-{size - 1}/{size}")
            self.send_header("Content-Length", str(size - position))
            self.end_headers()
            while position < size:
                until = intake.available(position, generation, PATIENCE)
                if until <= position:
                    self.close_connection = True
                    return
                position += os.sendfile(self.connection.fileno(), source, position, min(until - position, SLICE))
            check.forget(source)
        finally:
            os.close(source)

    def _json(self, status: int, data: dict[str, Any]) -> None:
        body = json.dumps(data).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _bound(address: str, job: Job) -> Server:
    """An earlier transfer that was just ended may hold the port for a moment longer than it is seen."""
    until = time.monotonic() + HELD
    while True:
        try:
            return Server((address, job.spec["port"]), job)
        except OSError as error:
            if error.errno != errno.EADDRINUSE or time.monotonic() > until:
                raise
            time.sleep(0.2)


def start(job: Job) -> list[Server]:
    """Listen on the rails only: every address that this node really has."""
    servers, refused = [], []
    for address in job.spec["listen"]:
        try:
            server = _bound(address, job)
        except OSError as error:
            refused.append(f"{address}:{job.spec['port']} ({error.strerror})")
            continue
        threading.Thread(target=server.serve_forever, args=(0.2,), daemon=True).start()
        servers.append(server)
    if not servers:
        raise StoreError(
            f"cannot listen on {', '.join(refused)}: the rails' addresses come from playbooks/fabric.yml, the port is "
            "model_store_port"
        )
    return servers
