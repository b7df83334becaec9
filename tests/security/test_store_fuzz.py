"""The store's giver and taker under many hostile words: no crash, no hang, bounded memory, nothing written outside."""

from __future__ import annotations

import json
import random
import socket
import struct
import time
from pathlib import Path

from sparkloom.onnode.weights import wire
from sparkloom.onnode.weights.layout import Snapshot
from sparkloom.onnode.weights.names import StoreError
from tests.security.stores import COMMIT, MODEL, SECRET, checkpoint, entry, nodes, outside

PROVED, STRANGE, TOGETHER = 99_500, 500, 500
WORDS = ["manifest", "file", "released", "..", "/", "0" * 64, "f" * 64, "9" * 15, "-1", " ", "%00", "~", ""]


def test_a_hundred_thousand_messages(tmp_path: Path) -> None:
    draw = random.Random(13)
    with nodes(tmp_path, "spark1") as (node,):
        spec = {"downstream": True, "peers": ["127.0.0.1"]}
        node.start(node.spec({"kind": "folder", "path": str(checkpoint(tmp_path / "usb"))}, **spec))
        told = node.listed()[MODEL]
        place, process = ("127.0.0.1", node.port), node.status()["pid"]
        before, slowest, begun = outside(tmp_path, node.root), 0.0, time.monotonic()
        connection = socket.create_connection(place, timeout=5)
        lines = wire.Lines(connection)
        theirs = lines.read(5).split()[-1]
        for _ in range(PROVED // TOGETHER):
            sent, asked = b"", time.monotonic()
            for _ in range(TOGETHER):
                request = " ".join(draw.choices(WORDS, k=draw.randint(1, 5)))[:199] or "x"
                request = "x" if request == "released" else request
                mine = f"{draw.getrandbits(128):032x}"
                proof = wire.proof(SECRET.encode(), "taker", theirs, mine, request)
                sent += f"{mine} {proof} {request}\n".encode()
            connection.sendall(sent)
            for _ in range(TOGETHER):
                answer = lines.read(5).split()
                assert answer[:2] == ["unknown", "0"], answer
            slowest = max(slowest, time.monotonic() - asked)
        connection.close()
        for _ in range(STRANGE):
            with socket.create_connection(place, timeout=5) as stranger:
                stranger.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                stranger.sendall(draw.randbytes(draw.randint(1, 500)) + b"\n")
        spent = time.monotonic() - begun
        asked = time.monotonic()
        assert wire.Connection(*place, None, 5).ask(SECRET.encode(), f"manifest {told}")[0] == "manifest"
        slowest = max(slowest, time.monotonic() - asked)
        memory = int(Path(f"/proc/{process}/status").read_text().partition("VmHWM:")[2].split()[0])
        print(f"{PROVED + STRANGE} messages in {spent:.1f} s, slowest {slowest:.3f} s, {memory / 1024:.0f} MB")
        assert slowest < 1 and spent < 60 and memory < 200_000
        assert outside(tmp_path, node.root) == before


def test_two_thousand_hostile_manifests_make_a_snapshot_inside_or_none() -> None:
    draw, refused = random.Random(7), 0
    odd = ["../x", "/x", "", ".", "a//b", "a\0b", "x" * 600, "\ud800", 1, None, [], {}, True, -1, 1e9, "a/../../b"]
    for _ in range(2000):
        files = [entry(f"f{number}", b"x") for number in range(draw.randint(1, 4))]
        told = {"id": MODEL, "commit": COMMIT, "files": files}
        target = draw.choice([told, *files])
        target[draw.choice(list(target))] = draw.choice(odd)
        try:
            Snapshot.of(json.loads(json.dumps(told)))
        except StoreError as error:
            refused += 1
            assert str(error).isprintable() and len(str(error)) < 500
        else:
            assert all(isinstance(file["size"], int) and file["size"] >= 0 for file in told["files"])
    assert refused > 1800
