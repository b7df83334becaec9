"""What a router adds to each token, against none, in turns with it: arrivals against what the engines really sent when.

Both processes read the machine's one monotonic clock, so each token's way is measured by itself. The client is an
asyncio protocol that stamps what arrives (bare_client.py, with uvloop where that is installed).
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
import time
from pathlib import Path
from typing import Any

from load import _family, _rss
from router_rig import ALICE, CHAT, Engine, Rig, asked

TEXT = re.compile(rb'"content": ?"[^"]')
TICK = os.sysconf("SC_CLK_TCK")


class Stream(asyncio.Protocol):
    def __init__(self, message: bytes, ended: asyncio.Future[None]) -> None:
        self.message, self.ended = message, ended
        self.times: list[float] = []
        self.sent, self.tail = 0.0, b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.sent = time.monotonic()
        transport.write(self.message)

    def data_received(self, data: bytes) -> None:
        now = time.monotonic()
        self.times.extend([now] * len(TEXT.findall(data)))
        self.tail = (self.tail + data)[-64:]
        if b"[DONE]" in self.tail and not self.ended.done():
            self.ended.set_result(None)
            self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.ended.done():
            self.ended.set_exception(exc or ConnectionError(f"cut: {self.tail!r}"))


def message(model: str, body: bytes, key: str) -> bytes:
    head = (
        f"POST {CHAT} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nX-Model: {model}\r\n"
        f"{f'Authorization: Bearer {key}' if key else 'X-Without: a key'}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


Door = tuple[str, int, str]  # a model, the port where it is asked, and with which key


async def run(doors: list[Door], streams: int, tokens: int, large: int) -> list[Stream]:
    """The doors in turns, all begun within a second; `large`: so many bodies of a megabyte a second beside them."""
    loop = asyncio.get_running_loop()
    made = []
    for number in range(streams):
        model, port, key = doors[number % len(doors)]
        body = asked(model, tokens, f"stream {number}")
        made.append(Stream(message(model, body, key), loop.create_future()))
        await loop.create_connection(lambda s=made[-1]: s, "127.0.0.1", port)  # type: ignore[misc]
        await asyncio.sleep(1 / streams)
    beside = asyncio.ensure_future(_large(*doors[0], large)) if large else None
    await asyncio.gather(*(stream.ended for stream in made))
    if beside:
        beside.cancel()
    return made


async def _large(model: str, port: int, key: str, rate: int) -> None:
    loop = asyncio.get_running_loop()
    body = message(model, asked(model, 1, "word " * 210_000, last=True), key)
    while True:
        stream = Stream(body, loop.create_future())
        await loop.create_connection(lambda s=stream: s, "127.0.0.1", port)  # type: ignore[misc]
        await asyncio.sleep(1 / rate)


def measured(rig: Rig | None, engines: dict[str, Engine], streams: int, tokens: int, large: int) -> dict[str, Any]:
    """Milliseconds from an engine's hand to ours, of each first token with its request's way, and of all others."""
    for engine in engines.values():
        engine.truth()
    doors = [(engine.name, engine.port, engine.key) for engine in engines.values()]
    if rig:
        doors = [(name, rig.site.port, "" if rig.candidate.passes else ALICE.key) for name, _, _ in doors]
    before = _cpu(rig.process.pid) if rig else 0.0
    begun = time.monotonic()
    made = _loop(run(doors, streams, tokens, large))
    wall = time.monotonic() - begun
    spent = _cpu(rig.process.pid) - before if rig else 0.0
    memory = sum(map(_rss, _family(rig.process.pid))) / 1024 if rig else 0.0
    sent = {one["prompt"]: one for engine in engines.values() for one in engine.truth()}
    first, other = [], []
    for number, stream in enumerate(made):
        truth = sent[f"stream {number}"]
        ways = [1000 * (here - there) for here, there in zip(stream.times, truth["sent"], strict=True)]
        first.append(ways[0] + 1000 * (truth["asked"] - stream.sent))
        other += ways[1:]
    thousand = streams * tokens / 1000
    return {"first": first, "other": other, "cpu_per_1k": spent / thousand, "cores": spent / wall, "rss_mb": memory}


def _loop(work: Any) -> list[Stream]:
    try:
        from uvloop import run as go  # type: ignore[import-not-found]
    except ImportError:
        from asyncio import run as go
    made: list[Stream] = go(work)
    return made


def _cpu(pid: int) -> float:
    total = 0
    for member in _family(pid):
        try:
            fields = Path(f"/proc/{member}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        total += int(fields[11]) + int(fields[12])
    return total / TICK


def percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def turns(rig: Rig, engines: dict[str, Engine], options: Any) -> dict[str, Any]:
    """Without a router and with it, in turns; the medians of the runs' percentiles, and what is between them."""
    rows: dict[str, list[dict[str, Any]]] = {"none": [], "router": [], "large": []}
    for number in range(options.repeat):
        sys.stderr.write(f"  {rig.candidate.name} {number + 1} of {options.repeat}\n")
        rows["none"].append(measured(None, engines, options.streams, options.tokens, 0))
        rows["router"].append(measured(rig, engines, options.streams, options.tokens, 0))
    rows["large"].append(measured(rig, engines, options.streams, options.tokens, options.large))
    return {name: summary(runs) for name, runs in rows.items()}


def summary(runs: list[dict[str, Any]]) -> dict[str, float]:
    told = {}
    for what in ("first", "other"):
        for name, share in (("p50", 0.5), ("p99", 0.99)):
            told[f"{what}_{name}"] = middle([percentile(run[what], share) for run in runs])
    return told | {key: middle([run[key] for run in runs]) for key in ("cpu_per_1k", "cores", "rss_mb")}


def middle(values: list[float]) -> float:
    return sorted(values)[len(values) // 2]
