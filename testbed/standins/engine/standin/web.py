"""HTTP/1.1 on asyncio streams: what an engine's API needs and no more, so that four ranks fit beside a cluster."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

PLAIN = "text/plain; charset=utf-8"
REASONS = {
    200: "OK", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found", 405: "Method Not Allowed",
    500: "Internal Server Error", 501: "Not Implemented", 503: "Service Unavailable",
}  # fmt: skip


class ClientLeft(ConnectionError):
    """Nobody reads the answer any more."""


@dataclass
class Request:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    reader: asyncio.StreamReader = field(repr=False)
    writer: asyncio.StreamWriter = field(repr=False)

    def json(self) -> dict[str, Any]:
        data = json.loads(self.body)
        if not isinstance(data, dict):
            raise ValueError("Input should be a valid dictionary")
        return data

    @property
    def left(self) -> bool:
        return self.reader.at_eof() or self.writer.is_closing()

    async def reply(self, status: int, data: object = "", kind: str = "application/json") -> None:
        body = data.encode() if isinstance(data, str) else json.dumps(data).encode()
        self.writer.write(self._head(status, kind, f"content-length: {len(body)}") + body)
        await self.writer.drain()

    def begin_stream(self) -> None:
        self.writer.write(self._head(200, "text/event-stream; charset=utf-8", "transfer-encoding: chunked"))

    async def event(self, data: object) -> None:
        payload = f"data: {data if isinstance(data, str) else json.dumps(data)}\n\n".encode()
        self.writer.write(f"{len(payload):x}\r\n".encode() + payload + b"\r\n")
        await self.writer.drain()

    async def end_stream(self) -> None:
        await self.event("[DONE]")
        self.writer.write(b"0\r\n\r\n")
        await self.writer.drain()

    @staticmethod
    def _head(status: int, kind: str, size: str) -> bytes:
        return f"HTTP/1.1 {status} {REASONS[status]}\r\ncontent-type: {kind}\r\n{size}\r\n\r\n".encode()


Handler = Callable[[Request], Awaitable[None]]


async def start(handler: Handler, host: str, port: int) -> asyncio.Server:
    async def connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while request := await _read(reader, writer):
                await handler(request)
                if request.headers.get("connection", "").lower() == "close":
                    break
        except (ConnectionError, asyncio.IncompleteReadError, ValueError):
            pass
        finally:
            writer.close()

    return await asyncio.start_server(connection, host, port)


async def _read(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Request | None:
    line = await reader.readline()
    if not line.strip():
        return None
    method, path, _ = line.decode().split(" ", 2)
    headers: dict[str, str] = {}
    while line := (await reader.readline()).strip():
        name, _, value = line.decode().partition(":")
        headers[name.strip().lower()] = value.strip()
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Request(method, path.partition("?")[0], headers, body, reader, writer)
