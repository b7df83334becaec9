"""The side that the next node asks: manifests and files by their sha256, while they arrive.

Only addresses that the plan gives to the next node are heard, and only with proofs of the run's secret. How many
connections, how long their lines and how long they may be silent is bounded, whoever they are.
"""

from __future__ import annotations

import errno
import hashlib
import hmac
import os
import re
import socket
import socketserver
import threading
import time
from typing import Any

from sparkloom.onnode import listening
from sparkloom.onnode.weights import check, wire
from sparkloom.onnode.weights.job import Job
from sparkloom.onnode.weights.names import StoreError

SLICE = 8 << 20
HELD = 10.0  # seconds to wait for the port
PATIENCE = 10.0  # how long an answer may stand still before its connection is given up
IDLE = 5.0  # seconds in which a question must be asked
BACKLOG = 64
STRANGERS = 16  # connections that have proved nothing yet: one more, and the oldest of them goes
SPARE = 8  # connections beyond two for each file that may travel at once
MANIFEST = re.compile(r"manifest ([0-9a-f]{64})")
FILE = re.compile(r"file ([0-9a-f]{64}) ([0-9]{1,15})")


class Server(listening.Server):
    """A stranger who holds his connection open keeps nobody out: the oldest of them makes room."""

    def __init__(self, address: tuple[str, int], job: Job) -> None:
        listener = socket.create_server(address, backlog=BACKLOG)
        super().__init__("store", listener, Handler, listening.ConnectionLimit(STRANGERS, STRANGERS))
        self.job = job
        self.planned = _resolved(job.spec["peers"])
        self.most = 2 * int(job.spec["connections"]) + SPARE
        self._proved = 0

    def verify_request(self, request: Any, client_address: Any) -> bool:
        return client_address[0] in self.planned

    def admit(self, request: socket.socket) -> bool:
        """It has proved that it knows the secret."""
        with self.lock:
            admitted = self.limit.leave(request) and self._proved < self.most
            self._proved += admitted
            return admitted

    def leave(self, *, admitted: bool) -> None:
        with self.lock:
            self._proved -= admitted


class Handler(socketserver.BaseRequestHandler):
    server: Server
    request: socket.socket

    def handle(self) -> None:
        admitted = False
        try:
            wire.limit(self.request, IDLE)
            lines, mine = wire.Lines(self.request), wire.nonce()
            self.request.sendall(f"{wire.GREETING} {mine}\n".encode())
            while asked := wire.ASKED.fullmatch(lines.read(IDLE)):
                theirs, given, request = asked.groups()
                proof = wire.proof(self.server.job.secret(), "taker", mine, theirs, request)
                if not hmac.compare_digest(given, proof):
                    return
                admitted = admitted or self.server.admit(self.request)
                if not admitted or not self._answer(_Answer(self.request, self.server.job, mine, theirs, request)):
                    return
        finally:
            self.server.leave(admitted=admitted)

    def _answer(self, to: _Answer) -> bool:
        """False where the connection is of no more use."""
        job = self.server.job
        job.heard = time.monotonic()
        if to.request == "released":
            to.give("done")
            job.released.set()
        elif not job.cause and not job.listed.wait(PATIENCE):
            to.give("wait")
        elif job.cause:  # before, or while it waited
            to.give("failed", job.cause.encode()[:2000])
        elif asked := MANIFEST.fullmatch(to.request):
            found = next((s for s in job.snapshots if job.manifests[s.id] == asked[1]), None)
            to.give("manifest", found.canonical()) if found else to.give("unknown")
        elif (asked := FILE.fullmatch(to.request)) and asked[1] in job.by_sha256:
            return _file(to, asked[1], int(asked[2]))
        else:
            to.give("unknown")
        return True


class _Answer:
    """One answer to one question, on its way."""

    def __init__(self, connection: socket.socket, job: Job, mine: str, theirs: str, request: str) -> None:
        self.connection, self.job, self.request = connection, job, request
        self._nonces = (mine, theirs)

    def head(self, word: str, size: int, sha256: str = "-") -> bytes:
        proof = wire.proof(self.job.secret(), "giver", *self._nonces, self.request, word, str(size), sha256)
        return f"{word} {size} {sha256} {proof}\n".encode()

    def give(self, word: str, body: bytes = b"") -> None:
        self.connection.sendall(self.head(word, len(body), hashlib.sha256(body).hexdigest()) + body)


def _file(to: _Answer, sha256: str, position: int) -> bool:
    intake = to.job.by_sha256[sha256]
    generation, size = intake.generation, intake.entry.size
    if position >= size:
        to.give("unknown")
        return True
    if intake.available(position, generation, PATIENCE) <= position:
        to.give("wait")
        return True
    try:
        source = os.open(intake.part if not intake.done else intake.final, os.O_RDONLY)
    except FileNotFoundError:
        source = os.open(intake.final, os.O_RDONLY)
    try:
        wire.limit(to.connection, PATIENCE)
        to.connection.sendall(to.head("file", size - position))
        while position < size:
            until = intake.available(position, generation, PATIENCE)
            if until <= position:
                return False
            position += os.sendfile(to.connection.fileno(), source, position, min(until - position, SLICE))
            to.job.heard = time.monotonic()
        check.forget(source)
        return True
    finally:
        os.close(source)


def _resolved(names: list[str]) -> set[str]:
    """The plan has names where nodes have no rails; a connection shows an address."""
    return {str(found[4][0]) for name in names for found in socket.getaddrinfo(name, None, socket.AF_INET)}


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
