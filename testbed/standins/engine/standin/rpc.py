"""llama.cpp over several machines: rpc-server lends memory, llama-server opens a connection to each of them."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

MEMORY_MIB = 124610


class RpcError(Exception):
    """The program ends with these words."""

    def __init__(self, text: str, status: int = 1) -> None:
        super().__init__(text)
        self.status = status


async def lend(values: dict[str, Any]) -> asyncio.Server:
    host, port = values.get("host") or "127.0.0.1", int(values.get("port") or 50052)

    async def client(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        print("Accepted client connection", flush=True)
        writer.write(b"\x04")  # protocol's greeting, shortened
        while await reader.read(1 << 16):
            pass
        print("Client connection closed", flush=True)
        writer.close()

    try:
        server = await asyncio.start_server(client, host, port)
    except OSError as error:
        raise RpcError(f"Failed to create server socket on {host}:{port}: {error.strerror}") from None
    print(
        f"Starting RPC server v3.6.0\n  endpoint       : {host}:{port}\n  local cache    : n/a\n"
        f"Devices:\n  CUDA0: NVIDIA GB10 ({MEMORY_MIB} MiB, {MEMORY_MIB - 4000} MiB free)",
        flush=True,
    )
    return server


async def borrow(servers: str, gone: asyncio.Event) -> list[Any]:
    """A connection to each server, tried once: the real one ended with status 139 where none listened.

    `gone` is set when one of them goes; nothing is said about it before the next request.
    """
    held: list[Any] = []
    for endpoint in filter(None, servers.split(",")):
        host, _, port = endpoint.rpartition(":")
        try:
            reader, writer = await asyncio.open_connection(host, int(port))
            await reader.readexactly(1)
        except (OSError, EOFError, ValueError):
            words = f"Failed to connect to {endpoint}\nerror: failed to get RPC device {endpoint}"
            raise RpcError(words, 139) from None
        print(f"ggml_backend_rpc_add_device: RPC[{endpoint}] {MEMORY_MIB} MiB", flush=True)
        held += [writer, asyncio.create_task(_watch(reader, gone))]
    return held


async def _watch(reader: asyncio.StreamReader, gone: asyncio.Event) -> None:
    with contextlib.suppress(OSError):
        await reader.read(1)
    gone.set()
