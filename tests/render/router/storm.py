"""Requests of every kind at once: right, too long, no JSON, no HTTP, left early, read slowly, with a wrong key."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from tests.render.router.running import ALICE, BOB, CHAT, Router, asked

MODELS = ("alpha", "beta", "gamma")
TEXT = b'"content": "'


@dataclass
class Storm:
    router: Router
    dice: random.Random
    done: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    may_reach: set[str] = field(default_factory=set)  # prompts that an engine may have heard
    whole: Counter[str] = field(default_factory=Counter)  # tokens of answers that came to their end, by model

    async def open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.router.terms.port, limit=1 << 20)

    def request(self, body: bytes, key: str = ALICE, length: int = 0) -> bytes:
        head = (
            f"POST {CHAT} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nConnection: close\r\n"
            f"Authorization: Bearer {key}\r\nContent-Length: {length or len(body)}\r\n\r\n"
        )
        return head.encode() + body

    def body(self, number: int, model: str, tokens: int, *, stream: bool = True, more: str = "") -> bytes:
        return json.dumps({**asked(model, tokens, f"storm {number} {more}"), "stream": stream}).encode()

    def right(self, number: int, **more: object) -> tuple[bytes, str, int]:
        model, tokens = self.dice.choice(MODELS), self.dice.randrange(1, 20)
        self.may_reach.add(f"storm {number}")
        return self.body(number, model, tokens, **more), model, tokens  # type: ignore[arg-type]

    async def ask(self, message: bytes, pace: Callable[[], Awaitable[None]] | None = None) -> bytes:
        reader, writer = await self.open()
        try:
            writer.write(message)
            pieces = []
            while piece := await asyncio.wait_for(reader.read(512 if pace else 65536), 60):
                pieces.append(piece)
                if pace:
                    await pace()
            return b"".join(pieces)
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    def told(self, kind: str, number: int, good: bool, answer: bytes) -> None:
        self.done[kind] += 1
        if not good:
            self.wrong.append(f"{kind} {number}: {answer[:300]!r}")

    def finished(self, kind: str, number: int, answer: bytes, model: str, tokens: int) -> None:
        good = answer.startswith(b"HTTP/1.1 200") and answer.count(TEXT) == tokens + 1 and b"[DONE]" in answer
        self.told(kind, number, good, answer)
        self.whole[model] += tokens

    # Each kind, by name ----------------------------------------------------------------------------------------------

    async def stream(self, number: int) -> None:
        body, model, tokens = self.right(number)
        self.finished("stream", number, await self.ask(self.request(body)), model, tokens)

    async def slow_reader(self, number: int) -> None:
        body, model, tokens = self.right(number)
        answer = await self.ask(self.request(body), lambda: asyncio.sleep(0.02))
        self.finished("slow reader", number, answer, model, tokens)

    async def large(self, number: int) -> None:
        body, model, tokens = self.right(number, more='w "x" ' * self.dice.randrange(20_000, 300_000))
        self.finished("large", number, await self.ask(self.request(body)), model, tokens)

    async def in_one_piece(self, number: int) -> None:
        body, model, tokens = self.right(number, stream=False)
        answer = await self.ask(self.request(body))
        good = f'"completion_tokens": {tokens}'.encode() in answer
        self.told("in one piece", number, good, answer)
        self.whole[model] += tokens

    async def leaves(self, number: int) -> None:
        """In the answer, or before its first byte."""
        model = self.dice.choice(MODELS)
        self.may_reach.add(f"storm {number}")
        reader, writer = await self.open()
        writer.write(self.request(self.body(number, model, 3000)))
        if self.dice.random() < 0.6:
            await reader.read(300)
        await asyncio.sleep(self.dice.random() * 0.1)
        writer.transport.abort()
        self.told("leaves", number, True, b"")

    async def leaves_in_its_body(self, number: int) -> None:
        _, writer = await self.open()
        body = self.body(number, "alpha", 5)
        writer.write(self.request(body[: len(body) // 2], length=len(body)))
        await asyncio.sleep(self.dice.random() * 0.05)
        writer.transport.abort()
        self.told("leaves in its body", number, True, b"")

    async def too_long(self, number: int) -> None:
        body = self.body(number, "alpha", 5, more="x" * ((self.router.terms.megabytes << 20) + 10_000))
        try:
            answer = await self.ask(self.request(body))
        except ConnectionError:  # it need not read what it refused
            answer = b"HTTP/1.1 413"
        self.told("too long", number, answer.startswith(b"HTTP/1.1 413") or not answer, answer)

    async def no_json(self, number: int) -> None:
        body = self.body(number, "alpha", 5)
        cut = body[: self.dice.randrange(len(body) - 1)]
        answer = await self.ask(
            self.request(self.dice.choice([cut, b"", b"\x00" * 50, body.replace(b'"model"', b'"m"')]))
        )
        self.told("no JSON", number, answer.startswith(b"HTTP/1.1 400"), answer)

    async def no_http(self, number: int) -> None:
        answer = await self.ask(self.dice.randbytes(40) + b"\r\n\r\n")
        self.told("no HTTP", number, not answer or answer.startswith(b"HTTP/1.1 400"), answer)

    async def wrong_key(self, number: int) -> None:
        body = self.body(number, self.dice.choice(MODELS), 5)
        answer = await self.ask(self.request(body, f"sk-guess-{self.dice.random()}"))
        self.told("wrong key", number, answer.startswith(b"HTTP/1.1 401"), answer)

    async def other_model(self, number: int) -> None:
        """Of a key that opens alpha alone, or one that is not there."""
        model, key = self.dice.choice([("beta", BOB), ("gamma", BOB), ("nobody", ALICE)])
        answer = await self.ask(self.request(self.body(number, model, 5), key))
        self.told("other model", number, answer.startswith(b"HTTP/1.1 404"), answer)


SHARES: dict[Callable[[Storm, int], Awaitable[None]], int] = {
    Storm.stream: 40, Storm.in_one_piece: 10, Storm.slow_reader: 5, Storm.large: 2, Storm.leaves: 10,
    Storm.leaves_in_its_body: 4, Storm.too_long: 1, Storm.no_json: 8, Storm.no_http: 2, Storm.wrong_key: 10,
    Storm.other_model: 8,
}  # fmt: skip


async def run(storm: Storm, first: int, count: int) -> None:
    """So many requests, 1 to 64 at a time."""
    kinds = storm.dice.choices(list(SHARES), list(SHARES.values()), k=count)
    gate = asyncio.Semaphore(64)

    async def one(number: int, kind: Callable[[Storm, int], Awaitable[None]]) -> None:
        async with gate:
            try:
                await kind(storm, number)
            except Exception as error:
                storm.wrong.append(f"{kind.__name__} {number}: {type(error).__name__} {error}")

    at = 0
    while at < count:
        crowd = storm.dice.choice((1, 4, 16, 64, 64, 256))
        await asyncio.gather(*(one(first + at + i, kind) for i, kind in enumerate(kinds[at : at + crowd])))
        at += crowd
