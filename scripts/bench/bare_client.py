#!/usr/bin/env python3
"""The least that a client can be: an asyncio protocol that stamps chunks. The measure for load.py, no tool for people.

It knows nothing of HTTP but the blank line, judges nothing, and uses uvloop where that is installed.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import time

TEXT = re.compile(rb'"(?:reasoning_)?content": "[^"]')
COUNT = re.compile(rb'"completion_tokens": (\d+)')


class Stream(asyncio.Protocol):
    def __init__(self, message: bytes, ended: asyncio.Future[None]) -> None:
        self.message, self.ended = message, ended
        self.times: list[float] = []
        self.sent, self.count, self.tail = 0.0, 0, b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self.sent = time.monotonic()
        transport.write(self.message)  # type: ignore[attr-defined]

    def data_received(self, data: bytes) -> None:
        now = time.monotonic()
        self.times.extend([now] * len(TEXT.findall(data)))
        self.tail = (self.tail + data)[-400:]
        if b"[DONE]" in self.tail and not self.ended.done():
            if match := COUNT.search(self.tail):
                self.count = int(match[1])
            self.ended.set_result(None)
            self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.ended.done():
            self.ended.set_exception(exc or ConnectionError("cut"))


async def main(port: int, streams: int, tokens: int) -> None:
    asked = {
        "model": "pacing",
        "messages": [{"role": "user", "content": "hello"}],
        "max_tokens": tokens,
        "stream": True,
    }
    body = json.dumps({**asked, "stream_options": {"include_usage": True}}).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    loop = asyncio.get_running_loop()
    made = [Stream(head + body, loop.create_future()) for _ in range(streams)]
    await asyncio.gather(*(loop.create_connection(lambda s=s: s, "127.0.0.1", port) for s in made))
    await asyncio.gather(*(stream.ended for stream in made))
    spans = [(s.times[-1] - s.times[0], s.count - 1) for s in made]
    print(
        json.dumps(
            {
                "ttft_ms": 1000 * sum(s.times[0] - s.sent for s in made) / streams,
                "itl_ms": 1000 * sum(span / count for span, count in spans) / streams,
                "tok_s": sum(count / span for span, count in spans) / streams,
            }
        )
    )


if __name__ == "__main__":
    try:
        from uvloop import run
    except ImportError:
        from asyncio import run
    run(main(*map(int, sys.argv[1:4])))
