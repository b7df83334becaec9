"""The OpenAI-compatible server of rank 0, on asyncio streams: small, so that four ranks fit beside a cluster."""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from standin import text
from standin.config import Config

TOKENS_A_SECOND = {1: 10.1, 4: 7.3, 8: 5.3}  # per request at that many at once; replaced by what was measured


@dataclass
class State:
    config: Config
    ready: bool = False
    running: int = 0
    queued: int = 0
    generated: int = 0
    started: float = field(default_factory=time.time)
    served: int = 0
    pace: dict[int, float] = field(default_factory=lambda: dict(TOKENS_A_SECOND))

    def interval(self) -> float:
        level = max((n for n in self.pace if n <= max(1, self.running)), default=1)
        return 1 / self.pace[level]


@dataclass
class Request:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes


async def start(state: State, host: str, port: int) -> asyncio.Server:
    async def connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                request = await _read(reader)
                if request is None:
                    break
                await _answer(state, request, reader, writer)
                if request.headers.get("connection", "").lower() == "close":
                    break
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    return await asyncio.start_server(connection, host, port)


async def _read(reader: asyncio.StreamReader) -> Request | None:
    line = await reader.readline()
    if not line.strip():
        return None
    method, path, _ = line.decode().split(" ", 2)
    headers: dict[str, str] = {}
    while line := (await reader.readline()).strip():
        name, _, value = line.decode().partition(":")
        headers[name.strip().lower()] = value.strip()
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Request(method, path.partition("?")[0], headers, body)


def _head(status: str, kind: str, length: int | None) -> bytes:
    size = f"content-length: {length}" if length is not None else "transfer-encoding: chunked"
    return f"HTTP/1.1 {status}\r\ncontent-type: {kind}\r\n{size}\r\n\r\n".encode()


async def _send(writer: asyncio.StreamWriter, status: str, data: object, kind: str = "application/json") -> None:
    body = data.encode() if isinstance(data, str) else json.dumps(data).encode()
    writer.write(_head(status, kind, len(body)) + body)
    await writer.drain()


async def _answer(state: State, request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    open_paths = ("/health", "/metrics")  # the engine leaves these open too
    key = state.config.api_key
    if key and request.path not in open_paths and request.headers.get("authorization") != f"Bearer {key}":
        await _send(writer, "401 Unauthorized", {"error": "Unauthorized"})
        return
    handler: Callable[..., Awaitable[None]] | None = ROUTES.get((request.method, request.path))
    if handler is None:
        await _send(writer, "404 Not Found", {"detail": "Not Found"})
    elif not state.ready and request.path != "/metrics":
        await _send(writer, "503 Service Unavailable", "")
    else:
        await handler(state, request, reader, writer)


async def _health(state: State, request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    if request.path == "/health_generate":
        await asyncio.sleep(state.interval())
    await _send(writer, "200 OK", "", "text/plain")


async def _models(state: State, request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    card = {
        "id": state.config.served_name,
        "object": "model",
        "owned_by": state.config.engine,
        "max_model_len": state.config.context,
    }
    await _send(writer, "200 OK", {"object": "list", "data": [card]})


async def _model_info(
    state: State, request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    await _send(
        writer,
        "200 OK",
        {"model_path": state.config.model, "tokenizer_path": state.config.model, "is_generation": True},
    )


async def _server_info(
    state: State, request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    await _send(writer, "200 OK", {**state.config.values, "version": state.config.release})


async def _metrics(state: State, request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    prefix = "sglang" if state.config.engine == "sglang" else "vllm"
    gauges = {
        "sglang": {
            "num_running_reqs": state.running,
            "num_queue_reqs": state.queued,
            "token_usage": 0.0,
            "gen_throughput": state.running / state.interval(),
        },
        "vllm": {"num_requests_running": state.running, "num_requests_waiting": state.queued},
    }[prefix]
    label = f'{{model_name="{state.config.served_name}"}}'
    lines = [f"# TYPE {prefix}:{name} gauge\n{prefix}:{name}{label} {value}" for name, value in gauges.items()]
    lines.append(
        f"# TYPE {prefix}:generation_tokens_total counter\n{prefix}:generation_tokens_total{label} {state.generated}"
    )
    await _send(writer, "200 OK", "\n".join(lines) + "\n", "text/plain; version=0.0.4")


async def _chat(state: State, request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        asked = json.loads(request.body)
        messages = asked["messages"]
        limit = int(asked.get("max_completion_tokens") or asked.get("max_tokens") or 128)
    except (ValueError, KeyError, TypeError) as error:
        await _send(writer, "400 Bad Request", {"object": "error", "message": f"bad request: {error}", "code": 400})
        return
    thinking = state.config.reasoning and (asked.get("chat_template_kwargs") or {}).get("enable_thinking") is not False
    pieces = _pieces(f"{asked.get('seed')}{messages}", limit, thinking)
    usage = {"prompt_tokens": len(json.dumps(messages)) // 4, "completion_tokens": len(pieces)}
    usage["total_tokens"] = usage["prompt_tokens"] + usage["completion_tokens"]
    state.running += 1
    state.served += 1
    try:
        if asked.get("stream"):
            await _stream(state, asked, pieces, usage, reader, writer)
        else:
            await _whole(state, pieces, usage, reader, writer)
    finally:
        state.running -= 1


def _pieces(seed: str, limit: int, thinking: bool) -> list[tuple[str, str]]:
    """(channel, text) per token: a quarter is reasoning when thinking is on."""
    source = text.tokens(seed)
    share = limit // 4 if thinking else 0
    return [("reasoning_content" if place < share else "content", next(source)) for place in range(limit)]


def _identity(state: State, kind: str) -> dict[str, Any]:
    return {"id": uuid.uuid4().hex, "object": kind, "created": int(time.time()), "model": state.config.served_name}


async def _stream(
    state: State,
    asked: dict[str, Any],
    pieces: list[tuple[str, str]],
    usage: dict[str, int],
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
) -> None:
    base = _identity(state, "chat.completion.chunk")
    writer.write(_head("200 OK", "text/event-stream", None))

    async def event(data: object) -> None:
        payload = f"data: {data if isinstance(data, str) else json.dumps(data)}\n\n".encode()
        writer.write(f"{len(payload):x}\r\n".encode() + payload + b"\r\n")
        await writer.drain()

    def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        return {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    await event(chunk({"role": "assistant", "content": ""}))
    due = time.monotonic()
    for channel, piece in pieces:
        due += state.interval()
        await asyncio.sleep(max(0.0, due - time.monotonic()))
        if reader.at_eof() or writer.is_closing():
            raise ConnectionError("the client left")
        await event(chunk({channel: piece}))
        state.generated += 1
    await event(chunk({}, "length"))
    if (asked.get("stream_options") or {}).get("include_usage"):
        await event({**base, "choices": [], "usage": usage})
    await event("[DONE]")
    writer.write(b"0\r\n\r\n")
    await writer.drain()


async def _whole(
    state: State,
    pieces: list[tuple[str, str]],
    usage: dict[str, int],
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
) -> None:
    for _ in pieces:
        await asyncio.sleep(state.interval())
        if reader.at_eof():
            raise ConnectionError("the client left")
        state.generated += 1
    said = {
        channel: "".join(piece for where, piece in pieces if where == channel) or None
        for channel in ("content", "reasoning_content")
    }
    choice = {"index": 0, "message": {"role": "assistant", **said, "tool_calls": None}, "finish_reason": "length"}
    await _send(writer, "200 OK", {**_identity(state, "chat.completion"), "choices": [choice], "usage": usage})


ROUTES: dict[tuple[str, str], Callable[..., Awaitable[None]]] = {
    ("GET", "/health"): _health,
    ("GET", "/health_generate"): _health,
    ("GET", "/v1/models"): _models,
    ("GET", "/get_model_info"): _model_info,
    ("GET", "/model_info"): _model_info,
    ("GET", "/get_server_info"): _server_info,
    ("GET", "/metrics"): _metrics,
    ("POST", "/v1/chat/completions"): _chat,
}
