"""llama.cpp over several machines: rpc-server lends memory, llama-server opens a connection to each of them."""

from __future__ import annotations

import asyncio
from typing import Any

MEMORY_MIB = 124610
CONNECT_SECONDS = 60.0


class RpcError(Exception):
    """llama-server ends with these words."""


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


async def borrow(servers: str, broken: asyncio.Event) -> list[Any]:
    """A connection to each server, tried for a while as pods start apart; `broken` is set when one of them goes."""
    held: list[Any] = []
    for endpoint in filter(None, servers.split(",")):
        host, _, port = endpoint.rpartition(":")
        try:
            reader, writer = await asyncio.wait_for(_connect(host, int(port)), CONNECT_SECONDS)
        except (OSError, TimeoutError, ValueError):
            raise RpcError(f"Failed to connect to {endpoint}\nerror: failed to get RPC device {endpoint}") from None
        print(f"ggml_backend_rpc_add_device: RPC[{endpoint}] {MEMORY_MIB} MiB", flush=True)
        held += [writer, asyncio.create_task(_watch(reader, broken))]
    return held


async def _connect(host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    while True:
        try:
            reader, writer = await asyncio.open_connection(host, port)
            await reader.readexactly(1)
            return reader, writer
        except OSError:
            await asyncio.sleep(0.5)


async def _watch(reader: asyncio.StreamReader, broken: asyncio.Event) -> None:
    await reader.read(1)
    broken.set()
