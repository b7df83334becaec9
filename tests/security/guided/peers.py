"""What hubs, ranks and other nodes' stores send."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import io
import json
import socket
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import MagicMock

import httpx2
import huggingface_hub.utils._http as client

from sparkloom.base.errors import InputError
from sparkloom.inputs.checkpoint import sources
from sparkloom.onnode.rank import proof, wire
from sparkloom.onnode.rank.follower import Follower
from sparkloom.onnode.rank.group import Identity
from sparkloom.onnode.rank.head import Head
from sparkloom.onnode.rank.plan import GroupPlan
from sparkloom.onnode.weights import layout
from sparkloom.onnode.weights import wire as store_wire
from sparkloom.onnode.weights.hub import Hub
from sparkloom.onnode.weights.names import StoreError
from tests.security.guided.target import JSON_WORDS, SCRATCH, Target

BETWEEN = b"\n\x1e\n"
SECRET = b"0123456789abcdef0123456789abcdef"
COMMIT, MODEL = "0" * 40, "org/name"

# --- the hub ------------------------------------------------------------------------------------------------------

said: list[bytes] = []


def _answers(request: httpx2.Request) -> httpx2.Response:
    """One after the other: what the model is, its list of files, then files."""
    at = (
        0
        if "/tree/" not in request.url.path and "/api/" in request.url.path
        else 1
        if "/api/" in request.url.path
        else 2
    )
    body = said[at] if at < len(said) else b""
    kind = {"Content-Type": "application/json", "ETag": '"x"', "X-Repo-Commit": COMMIT}
    return httpx2.Response(200, content=body, headers=kind)


def hub(data: bytes) -> None:
    """As a node's store asks, and as `sparkloom draft` does: the client's own code is between, its network is not."""
    said[:] = data.split(BETWEEN)
    want = {"id": MODEL, "revision": "main", "include": ["*"], "exclude": []}
    with contextlib.suppress(StoreError):
        Hub({"endpoint": "https://hub.invalid"}).manifest(layout.Store(SCRATCH / "store"), [want])
    found = sources.Hub(MODEL)
    assert isinstance(found.sizes, dict) and (found.commit is None or found.commit) and found.gated in (True, False)
    for name in list(found.sizes)[:2]:
        found.part(name, 0, 9)


def hub_seeds() -> Iterator[bytes]:
    small = b"{}\n"
    git = hashlib.sha1(b"blob %d\0" % len(small) + small).hexdigest()
    files = [
        {"type": "file", "path": "config.json", "size": len(small), "oid": git},
        {
            "type": "file",
            "path": "m.safetensors",
            "size": 9,
            "oid": git,
            "lfs": {"oid": "a" * 64, "size": 9, "pointerSize": 1},
        },
        {"type": "directory", "path": "original", "oid": git, "size": 0},
    ]
    model = {"id": MODEL, "sha": COMMIT, "gated": False, "private": False, "tags": [], "downloads": 1, "likes": 1,
             "siblings": [{"rfilename": one["path"], "size": one["size"], "blobId": git} for one in files]}  # fmt: skip
    yield BETWEEN.join([json.dumps(model).encode(), json.dumps(files).encode(), small])


# --- ranks --------------------------------------------------------------------------------------------------------

MEMBERS = [{"rank": n, "node": f"spark{n + 1}", "address": f"127.0.0.{n + 1}"} for n in range(2)]
PLAN = GroupPlan.of(
    {"profile": "p", "engine": "sglang", "release": "0", "image": "i", "port": 1, "members": MEMBERS, "control_port": 2}
)
LOOP = asyncio.new_event_loop()
NONCE = b"\x11" * proof.SIZE


class _Quiet:
    """A connection's other end that takes all."""

    transport = SimpleNamespace(get_write_buffer_size=lambda: 0, abort=lambda: None)

    def is_closing(self) -> bool:
        return False

    def write(self, line: bytes) -> None: ...

    def close(self) -> None: ...

    def get_extra_info(self, name: str) -> None: ...


def _wire(data: bytes) -> wire.Wire:
    reader = asyncio.StreamReader(loop=LOOP)
    reader.feed_data(data)
    reader.feed_eof()
    return wire.Wire(reader, cast("asyncio.StreamWriter", _Quiet()))


def _sealed(side: bytes, data: bytes) -> tuple[wire.Wire, proof.Session]:
    """Lines as one says them that knows the secret."""
    theirs = proof.Session.of(SECRET, 1, NONCE, NONCE, side)
    connection = _wire(b"".join(theirs.seal(line) + b"\n" for line in data.split(b"\n")))
    connection.session = proof.Session.of(
        SECRET, 1, NONCE, NONCE, proof.HEAD if side == proof.FOLLOWER else proof.FOLLOWER
    )
    return connection, theirs


async def _over() -> None:
    """What was begun for later is not waited for."""
    await asyncio.sleep(0)
    others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


async def _stranger(data: bytes) -> None:
    with contextlib.suppress(wire.Unproved):
        await wire.take(_wire(data), SECRET, 1)
    with contextlib.suppress(wire.Unproved):
        await wire.meet(_wire(data), SECRET, 1)


def stranger(data: bytes) -> None:
    LOOP.run_until_complete(_stranger(data))


async def _as_head(data: bytes) -> None:
    head = Head(PLAN, Identity(0, "c", "b"), MagicMock())
    head.begun, first = data[:1] == b"{", data.partition(b"\n")[0]
    connection, _ = _sealed(proof.FOLLOWER, data)
    hello = await connection.receive()
    if hello is not None and first:
        head.offer()
        await head._take(PLAN.members[1], connection, {"config": "c", "build": "b", **hello})
    if head._late:
        head._late.cancel()
    json.dumps([head.waiting, head.down, head.why, head.budget.ages(), head.budget.row, head.budget.pause()])
    await _over()


async def _as_follower(data: bytes) -> None:
    follower = Follower(PLAN, Identity(1, "c", "b"), MagicMock())
    connection, _ = _sealed(proof.HEAD, data)
    with contextlib.suppress(TypeError, ValueError, KeyError, OverflowError):  # as its `_connection` has it
        await follower._spoken(connection)
    json.dumps([follower.waiting, follower.down, follower.why, follower.budget.ages(), follower.budget.row])


def member(data: bytes) -> None:
    LOOP.run_until_complete(_as_head(data))
    LOOP.run_until_complete(_as_follower(data))


def rank_words() -> Iterator[bytes]:
    yield (
        b'{"epoch": 2, "failures": [1.5, 2], "row": ["engine", "transport"], "served": true}\n{"offer": 0}\n'
        b'{"lost": "x", "own": true, "epoch": 2}'
    )
    yield b'{"works": "w", "epoch": 0}\n{"agreed": 0}\n{"beat": true}\n{"leave": true}'
    yield (
        b'{"welcome": true, "round": 1, "down": ""}\n{"present": true, "waiting": "", "beat": 1}\n'
        b'{"start": 3}\n{"epoch": 3, "answers": true}'
    )
    yield (
        b'{"start": 1}\n'
        b'{"stop": "why", "round": 2, "down": "", "failures": [1], "row": ["x"], "served": false}\n'
        b'{"proved": true, "epoch": 1}'
    )
    yield b'{"refused": "rank 0 refuses"}'


def hellos() -> Iterator[bytes]:
    yield b'{"rank": 1, "nonce": "%s"}\n' % NONCE.hex().encode()
    yield b'{"nonce": "%s", "proof": "%s"}\n' % (NONCE.hex().encode(), NONCE.hex().encode())
    yield b'{"refused": "older"}\n'


# --- a store's other node -----------------------------------------------------------------------------------------


class Plug(io.BytesIO):
    """A socket that has said all."""

    def recv(self, size: int, flags: int = 0) -> bytes:
        return self.read(size)

    def sendall(self, data: bytes) -> None: ...

    def settimeout(self, seconds: float) -> None: ...

    def makefile(self, mode: str, *more: object) -> io.BytesIO:
        return io.BytesIO(self.getvalue())

    def shutdown(self, how: int) -> None: ...


def store(data: bytes) -> None:
    """A manifest that another node sent; what it says on the line; what it asks for."""
    with contextlib.suppress(StoreError, ValueError, RecursionError):  # as Peer._one has it
        made = layout.Snapshot.of(json.loads(data))
        assert layout.Snapshot.of(json.loads(made.canonical())) == made
    connection = object.__new__(store_wire.Connection)
    connection._socket = cast("socket.socket", Plug(data))
    connection._reader = cast("Any", io.BytesIO(data))
    with contextlib.suppress(OSError):
        connection.ask(SECRET, "manifest x")
    lines = store_wire.Lines(cast("socket.socket", Plug(data)))
    with contextlib.suppress(OSError):
        while line := lines.read(1.0):
            store_wire.ASKED.fullmatch(line)


def manifests() -> Iterator[bytes]:
    entry = {"path": "a/config.json", "size": 3, "blob": "a" * 40, "sha256": "b" * 64}
    yield json.dumps(
        {"id": MODEL, "commit": COMMIT, "files": [entry, {**entry, "path": "b", "blob": "b" * 64}]}
    ).encode()
    yield f"{store_wire.GREETING} {'a' * 32}\nmanifest 3 {'b' * 64} {'c' * 64}\n".encode()


def still(put: Callable[[Any, str, Any], None]) -> None:
    """No waiting and no network: answers come from `_answers`, nonces are known."""
    put(time, "sleep", lambda seconds: None)
    put(proof, "nonce", lambda: NONCE)
    put(client, "default_client_factory", lambda: httpx2.Client(transport=httpx2.MockTransport(_answers)))


TARGETS = {
    "hub": Target(
        hub, hub_seeds, (InputError, StoreError), ('"siblings"', '"lfs"', '"size"', '"sha"', '"gated"', *JSON_WORDS)
    ),
    "ranks-stranger": Target(stranger, hellos, (), ('{"rank": ', '"nonce": "', '"proof": "')),
    "ranks-member": Target(
        member, rank_words, (), ('"epoch"', '"failures"', '"row"', '"round"', '"start"', '"lost"', *JSON_WORDS)
    ),
    "store": Target(store, manifests, (), ('"files"', '"path"', '"blob"', '"sha256"', *JSON_WORDS)),
}
