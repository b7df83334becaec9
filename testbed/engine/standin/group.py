"""How ranks meet: at the rendezvous address, with the same launch, and over every rail they mean to use.

Rank 0 listens on exactly the address that all ranks were given. Then each rank sends real bytes to its
neighbour over each rail. The connections to rank 0 stay open: when one breaks, the group is dead.
"""

from __future__ import annotations

import asyncio
import json
import os
from dataclasses import dataclass, field
from typing import Any

from standin.config import Config
from standin.fabric import Device, interface_address, say

MEET_SECONDS = float(os.environ.get("STANDIN_MEET_SECONDS", "600"))
RAIL_BYTES = 1 << 20


class GroupError(Exception):
    """The group does not form, or is no more; the text is what torch or NCCL says then."""


@dataclass
class Group:
    """A formed group; `broken` is set when any rank goes."""

    broken: asyncio.Event
    why: str = ""
    held: list[Any] = field(default_factory=list)  # sockets that live as long as the group


async def form(config: Config, transport: str, devices: list[Device]) -> Group:
    """All ranks, or GroupError on every one of them."""
    group = Group(asyncio.Event())
    if config.nnodes == 1:
        return group
    listeners = [await _rail_listener(device) for device in devices]
    me = {
        "rank": config.rank,
        "nnodes": config.nnodes,
        "hash": config.group_hash,
        "transport": transport,
        "rails": [
            [device.address, server.sockets[0].getsockname()[1]]
            for device, server in zip(devices, listeners, strict=True)
        ],
    }
    try:
        peers = await asyncio.wait_for(_meet(config, me, group), MEET_SECONDS)
        await _ring(config, transport, devices, peers)
    except TimeoutError:
        raise GroupError(
            f"torch.distributed.DistStoreError: Timed out after {int(MEET_SECONDS) + 1} seconds waiting for clients. {config.nnodes} expected"
        ) from None
    group.held += listeners
    return group


async def _meet(config: Config, me: dict[str, Any], group: Group) -> list[dict[str, Any]]:
    host, port = str(config.meet).rsplit(":", 1)
    return await (
        _host(config, host, int(port), me, group) if config.rank == 0 else _join(config, host, int(port), me, group)
    )


async def _host(config: Config, host: str, port: int, me: dict[str, Any], group: Group) -> list[dict[str, Any]]:
    arrived: dict[int, tuple[dict[str, Any], asyncio.StreamReader, asyncio.StreamWriter]] = {}
    complete, problem = asyncio.Event(), ""

    async def arrival(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal problem
        try:
            other = json.loads(await reader.readline())
        except ValueError:
            return
        if (other["nnodes"], other["hash"]) != (config.nnodes, me["hash"]):
            problem = f"rank {other['rank']} runs with another configuration than rank 0 ({other['nnodes']} nodes, {other['hash']})"
        elif other["rank"] in arrived:
            problem = f"two processes say that they are rank {other['rank']}"
        arrived[other["rank"]] = (other, reader, writer)
        if problem or len(arrived) == config.nnodes - 1:
            complete.set()

    try:
        server = await asyncio.start_server(arrival, host, port)
    except OSError as error:
        raise GroupError(
            f"torch.distributed.DistNetworkError: The server socket has failed to listen on {host}:{port}: {error.strerror}"
        ) from None
    await complete.wait()
    peers = [me, *(arrived[rank][0] for rank in sorted(arrived))]
    answer = json.dumps({"error": problem, "peers": peers}).encode() + b"\n"
    for _, _, writer in arrived.values():
        writer.write(answer)
        await writer.drain()
    if problem:
        raise GroupError(f"NCCL error: ncclInvalidUsage: mismatched collective: {problem}")
    group.held += [server, arrived]
    for rank, (_, reader, _) in arrived.items():
        asyncio.get_running_loop().create_task(_watch(group, reader, rank))
    return peers


async def _join(config: Config, host: str, port: int, me: dict[str, Any], group: Group) -> list[dict[str, Any]]:
    source = _source()
    while True:
        try:
            reader, writer = await asyncio.open_connection(host, port, local_addr=(source, 0) if source else None)
            break
        except OSError:
            await asyncio.sleep(0.2)
    writer.write(json.dumps(me).encode() + b"\n")
    await writer.drain()
    line = await reader.readline()
    if not line:
        raise GroupError(
            "torch.distributed.DistNetworkError: Connection was likely closed. Did the remote server shutdown or crash?"
        )
    answer = json.loads(line)
    if answer["error"]:
        raise GroupError(f"NCCL error: ncclInvalidUsage: mismatched collective: {answer['error']}")
    group.held.append(writer)
    asyncio.get_running_loop().create_task(_watch(group, reader, 0))
    peers: list[dict[str, Any]] = answer["peers"]
    return peers


async def _watch(group: Group, reader: asyncio.StreamReader, rank: int) -> None:
    try:
        await reader.read(1)
    except OSError:
        pass
    group.why = f"NCCL error: ncclRemoteError: remote process of rank {rank} exited or there was a network error"
    group.broken.set()


def _source() -> str | None:
    """The address of the interface that GLOO_SOCKET_IFNAME names: where torch's store connects from."""
    wanted = os.environ.get("GLOO_SOCKET_IFNAME")
    return interface_address(wanted) if wanted else None


async def _rail_listener(device: Device) -> asyncio.Server:
    async def receive(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readexactly(RAIL_BYTES)
            writer.write(b"k")
            await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        writer.close()

    return await asyncio.start_server(receive, device.address, 0)


async def _ring(config: Config, transport: str, devices: list[Device], peers: list[dict[str, Any]]) -> None:
    """Every rank sends to the next one over each rail."""
    following = peers[(config.rank + 1) % config.nnodes]
    if len(following["rails"]) != len(devices):
        raise GroupError(
            f"NCCL error: ncclSystemError: rank {following['rank']} has {len(following['rails'])} rails, this rank {len(devices)}"
        )
    for place, device in enumerate(devices):
        address, port = following["rails"][place]
        try:
            await asyncio.wait_for(_send(device.address, address, port), 20)
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            say(
                config.rank,
                f"NET/IB: Got completion from peer {address}<{port}> with status=12 opcode=0 len=0 vendor err 129 (RETRY_EXC_ERR) localGid ::ffff:{device.address} remoteGid ::ffff:{address} hca {device.name}",
                "WARN",
            )
            raise GroupError(f"NCCL error: ncclRemoteError: no answer from {address} over {device.name}") from None
        where = f"NET/{transport}/{place}"
        say(config.rank, f"Channel {place:02d}/0 : {config.rank}[0] -> {following['rank']}[0] [send] via {where}")
        previous = (config.rank - 1) % config.nnodes
        say(config.rank, f"Channel {place:02d}/0 : {previous}[0] -> {config.rank}[0] [receive] via {where}")


async def _send(source: str, target: str, port: int) -> None:
    reader, writer = await asyncio.open_connection(target, port, local_addr=(source, 0))
    writer.write(b"\0" * RAIL_BYTES)
    await writer.drain()
    await reader.readexactly(1)
    writer.close()
