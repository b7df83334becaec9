"""The pacing server's connections: one protocol object each, every chunk sent by a timer of its own schedule."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from typing import Any

from testbed.standins.pacing.conduct import Conduct, event, text

REASONS = {200: "OK", 401: "Unauthorized", 404: "Not Found", 429: "Too Many Requests", 500: "Internal Server Error"}

OPEN = ("/metrics", "/health", "/ping")  # without a key, as engines have them


class Server:
    def __init__(self, model: str, conduct: Conduct, key: str | None, metrics: str) -> None:
        self.model, self.conduct, self.key, self.metrics = model, conduct, key, metrics
        self.truth: list[dict[str, Any]] = []
        self.running = self.generated = self.number = 0

    def connection(self) -> Connection:
        return Connection(self)

    def page(self) -> str:
        if self.metrics == "vllm":
            return (
                f'vllm:num_requests_running{{engine="0"}} {self.running}\nvllm:num_requests_waiting{{engine="0"}} 0\n'
                f"vllm:kv_cache_usage_perc 0.25\nvllm:generation_tokens_total {self.generated}\n"
                f"vllm:spec_decode_num_drafts_total {self.generated // 3}\n"
                f"vllm:spec_decode_num_accepted_tokens_total {self.generated // 3 * 2}\n"
            )
        return (
            f'sglang:num_running_reqs{{tp_rank="0"}} {self.running}\nsglang:num_queue_reqs{{tp_rank="0"}} 0\n'
            f"sglang:token_usage 0.25\nsglang:generation_tokens_total {self.generated}\n"
            f"sglang:spec_accept_length {2.5 if self.running else 0.0}\n"
        )


class Connection(asyncio.Protocol):
    def __init__(self, server: Server) -> None:
        self.server = server
        self._buffer = bytearray()
        self._wanted = 0  # bytes, until the request is whole
        self._answer: Answer | None = None
        self._idle: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.loop = asyncio.get_running_loop()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._answer:
            self._answer.stop("client left")

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        ended = -1 if len(self._buffer) < self._wanted else self._buffer.find(b"\r\n\r\n")
        if ended < 0:
            return
        lines = self._buffer[:ended].decode("latin-1").split("\r\n")
        headers = {
            name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])
        }
        self._wanted = ended + 4 + int(headers.get("content-length", 0))
        if len(self._buffer) < self._wanted:
            return
        body = bytes(self._buffer[ended + 4 : self._wanted])
        del self._buffer[: self._wanted]
        self._wanted = 0
        if self._idle:
            self._idle.cancel()
        method, path, _ = lines[0].split(" ", 2)
        self._asked(method, path, headers, body)

    def _asked(self, method: str, path: str, headers: dict[str, str], body: bytes) -> None:
        server = self.server
        if server.key and headers.get("authorization") != f"Bearer {server.key}" and path not in OPEN:
            self.reply(401, {"error": {"message": "Invalid API key"}})
        elif path == "/v1/models":
            self.reply(200, {"object": "list", "data": [{"id": server.model, "object": "model"}]})
        elif path == "/truth":
            self.reply(200, server.truth)
            server.truth = [] if method == "DELETE" else server.truth
        elif path == "/metrics" and server.metrics != "none":
            self.reply(200, server.page())
        elif path in ("/health", "/ping"):
            self.reply(200, "")
        elif method == "POST" and path == "/v1/chat/completions":
            self._chat(json.loads(body))
        else:
            self.reply(404, {"error": {"message": f"no {path} here"}})

    def _chat(self, asked: dict[str, Any]) -> None:
        server = self.server
        conduct = Conduct.of(str(asked.get("model", "")).split(",")[1:], server.conduct)
        if conduct.status != 200:
            self.reply(conduct.status, {"error": {"message": "as told", "type": "test"}}, "retry-after: 7\r\n")
        elif conduct.garbage == "bytes":
            self.transport.write(b"\x00\x01 this is no HTTP \xff\r\n\r\n")
        else:
            server.number += 1
            self._answer = Answer(self, conduct, asked, server.number)

    def reply(self, status: int, data: Any, more: str = "") -> None:
        body = data.encode() if isinstance(data, str) else json.dumps(data).encode()
        kind = "text/plain" if isinstance(data, str) else "application/json"
        head = f"HTTP/1.1 {status} {REASONS.get(status, 'Odd')}\r\ncontent-type: {kind}\r\n{more}"
        self.transport.write(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)

    def finished(self, conduct: Conduct) -> None:
        self._answer = None
        if conduct.keep_alive == 0:
            self.transport.close()
        elif conduct.keep_alive == 2:
            self._idle = self.loop.call_later(0.2, self.transport.close)


class Answer:
    """One streamed answer and the times at which its parts really went out."""

    def __init__(self, connection: Connection, conduct: Conduct, asked: dict[str, Any], number: int) -> None:
        self._connection, self._conduct, self._number = connection, conduct, number
        self._loop, self._model = connection.loop, str(asked.get("model"))
        self._most = int(asked.get("max_tokens") or asked.get("max_completion_tokens") or 256)
        self._prompt = " ".join(str(message.get("content")) for message in asked.get("messages") or ())
        wanted = asked.get("stream_options") or {}
        self._usage = bool(conduct.usage and wanted.get("include_usage"))
        self._counts = bool(conduct.counts or wanted.get("continuous_usage_stats"))
        self._steps: Iterator[tuple[float, int]] = conduct.schedule(self._most)
        self._said = 0
        self._timers: list[asyncio.TimerHandle] = []
        self._asked = time.monotonic()
        self._record: dict[str, Any] = {"number": number, "asked": self._asked, "sent": [], "tokens": [], "end": None}
        self._record["prompt"] = self._prompt
        connection.server.truth.append(self._record)
        connection.server.running += 1
        self._running = True
        if asked.get("stream", True):
            self._stream()
        else:
            self._whole()

    def _whole(self) -> None:
        """One JSON object at the end instead of events."""
        steps = list(self._steps)
        self._said = sum(count for _, count in steps)
        self._at(steps[-1][0] if steps else self._conduct.ttft, self._give)

    def _give(self) -> None:
        server, said = self._connection.server, self._said
        message = {"role": "assistant", "content": text(self._conduct, self._number, 0, said)}
        choice = {"index": 0, "message": message, "finish_reason": "length" if said >= self._most else "stop"}
        server.generated += said
        self._record["sent"].append(time.monotonic())
        self._record["tokens"].append(said)
        whole = {"id": "pacing", "object": "chat.completion", "model": self._model, "choices": [choice]}
        self._connection.reply(200, {**whole, "usage": self._counted(said)})
        self.stop("")
        self._connection.finished(self._conduct)

    def _stream(self) -> None:
        head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n"
        slow = self._conduct.slow_headers
        cut = 20 if slow else len(head)
        self._connection.transport.write(head[:cut].encode())
        if slow:
            self._at(slow, lambda: self._connection.transport.write(head[cut:].encode()))
        if self._conduct.role:
            self._at(2 * slow, lambda: self._send({"role": "assistant", "content": ""}))
        if self._conduct.ping:
            self._ping()
        self._next()

    def _at(self, seconds: float, call: Any) -> None:
        """At a moment of this answer's own clock, so that lateness never adds up."""
        self._timers = self._timers[-3:]
        self._timers.append(self._loop.call_at(self._asked + seconds, call))

    def _ping(self) -> None:
        if self._running:
            self._write(b": still here\n\n")
            self._loop.call_later(self._conduct.ping, self._ping)

    def _next(self) -> None:
        step = next(self._steps, None)
        if step is None:
            self._end()
            return
        self._at(step[0], lambda: self._chunk(step[1]))

    def _chunk(self, count: int) -> None:
        conduct = self._conduct
        if not self._running:
            return
        if self._said >= conduct.stall_after >= 0:
            return
        if self._said >= conduct.cut_after >= 0:
            self._connection.transport.abort()
            return
        if self._said >= conduct.error_after >= 0:
            self._write(b'data: {"error": {"message": "the engine broke", "code": 500}}\n\n')
            self._finish()
            return
        thinks = self._said < conduct.reasoning
        piece = text(conduct, self._number, self._said, count)
        self._said += count
        self._connection.server.generated += count
        self._record["sent"].append(time.monotonic())
        self._record["tokens"].append(count)
        self._send({"reasoning_content" if thinks else "content": piece})
        self._next()

    def _send(self, delta: dict[str, Any] | None, finish: str | None = None, usage: bool = False) -> None:
        spoken = self._said + (self._conduct.tail if finish or usage else 0)
        self._write(event(self._model, delta, finish, self._counted(spoken) if usage or self._counts else None))

    def _counted(self, spoken: int) -> dict[str, int]:
        heard = 8 + len(self._prompt.split()) * 5 // 4  # as a tokenizer might: more tokens than words
        return {"prompt_tokens": heard, "completion_tokens": spoken, "total_tokens": heard + spoken}

    def _write(self, data: bytes) -> None:
        if not self._running:
            return
        whole = b"%x\r\n%b\r\n" % (len(data), data)
        size = self._conduct.split or len(whole)
        for start in range(0, len(whole), size):
            self._connection.transport.write(whole[start : start + size])

    def _end(self) -> None:
        self._send({}, "length" if self._said >= self._most else "stop")
        if self._usage:
            self._send(None, usage=True)
        self._write(b"data: [DONE]\n\n")
        self._finish()

    def _finish(self) -> None:
        self._connection.transport.write(b"0\r\n\r\n")
        self.stop("")
        self._connection.finished(self._conduct)

    def stop(self, why: str) -> None:
        if self._running:
            self._running = False
            self._connection.server.running -= 1
            self._record["end"], self._record["why"] = time.monotonic(), why
        for timer in self._timers:
            timer.cancel()
