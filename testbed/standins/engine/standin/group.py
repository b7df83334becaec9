"""How ranks meet: at the rendezvous address, with the same launch, and over every rail they mean to use.

Rank 0 listens on exactly the address that all ranks were given. Then each rank sends real bytes to its
neighbour over each rail. The connections to rank 0 stay open: when one breaks, the group is dead.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from standin.config import Config
from standin.fabric import Device, gid_words, interface_address, say

MEET_SECONDS = float(os.environ.get("STANDIN_MEET_SECONDS", "600"))
RAIL_SECONDS = float(os.environ.get("STANDIN_RAIL_SECONDS", "20"))
RAIL_BYTES = 1 << 20

Message = dict[str, Any]


class GroupError(Exception):
    """The group does not form, or is no more; the text is what torch or NCCL says then."""


@dataclass
class ProcessGroup:
    """A formed group; `broken` is set when any rank goes."""

    broken: asyncio.Event = field(default_factory=asyncio.Event)
    why: str = ""
    hear: Callable[[Message], None] = lambda _: None  # what rank 0 tells, on the other ranks
    writers: list[asyncio.StreamWriter] = field(default_factory=list)  # to the other ranks, on rank 0
    held: list[Any] = field(default_factory=list)  # what lives as long as the group
    steps: int = 0
    stepped: dict[int, int] = field(default_factory=dict)  # by rank, its last answer to a step; on rank 0
    arrived: asyncio.Event = field(default_factory=asyncio.Event)

    def tell(self, message: Message) -> None:
        for writer in self.writers:
            writer.write(json.dumps(message).encode() + b"\n")

    async def together(self) -> None:
        """As a collective: goes on when every rank is there, and for ever not while one of them stands still."""
        self.steps += 1
        mine = self.steps
        self.tell({"step": mine})
        while any(last < mine for last in self.stepped.values()):
            self.arrived.clear()
            await self.arrived.wait()


@dataclass
class Arrivals:
    """Rank 0's list of who came, and the first reason why this is no group."""

    config: Config
    me: Message
    came: dict[int, tuple[Message, asyncio.StreamReader, asyncio.StreamWriter]] = field(default_factory=dict)
    waiting: list[asyncio.StreamWriter] = field(default_factory=list)  # for the answer
    problem: str = ""
    complete: asyncio.Event = field(default_factory=asyncio.Event)

    async def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            other: Message = json.loads(await reader.readline())
            rank = int(other["rank"])
        except (ValueError, KeyError, TypeError, OSError):
            writer.close()
            return
        self.problem = self.problem or self._objection(rank, other)
        self.waiting.append(writer)
        self.came[rank] = (other, reader, writer)
        if self.problem or len(self.came) == self.config.nnodes - 1:
            self.complete.set()

    def _objection(self, rank: int, other: Message) -> str:
        if (other["nnodes"], other["hash"]) != (self.config.nnodes, self.me["hash"]):
            mine, theirs = _shape(self.me), _shape(other)
            return f"rank {rank} runs with another configuration ({theirs}) than rank 0 ({mine})"
        if rank in self.came or not 0 < rank < self.config.nnodes:
            return f"two processes say that they are rank {rank}" if rank in self.came else f"rank {rank} is no rank"
        if other["transport"] != self.me["transport"]:
            return f"rank {rank} uses network {other['transport']}, rank 0 uses {self.me['transport']}"
        return ""


def _shape(me: Message) -> str:
    return f"{me['nnodes']} nodes, {me['parallel']}, launch {me['hash']}"


async def form(config: Config, transport: str, devices: list[Device]) -> ProcessGroup:
    """All ranks, or GroupError on every one of them."""
    group = ProcessGroup()
    if config.nnodes == 1:
        return group
    listeners = [await _rail_listener(device) for device in devices]
    ports = [server.sockets[0].getsockname()[1] for server in listeners]
    me = {
        "rank": config.rank,
        "nnodes": config.nnodes,
        "parallel": f"tp {config.tp} pp {config.pp} ep {config.ep}",
        "hash": config.group_hash,
        "transport": transport,
        "rails": [[device.address, port] for device, port in zip(devices, ports, strict=True)],
    }
    host, port = str(config.meet).rsplit(":", 1)
    limit = config.meet_seconds or MEET_SECONDS
    meeting = _host(config, host, int(port), me, group) if config.rank == 0 else _join(host, int(port), me, group)
    try:
        peers = await asyncio.wait_for(meeting, limit)
    except TimeoutError:
        raise GroupError(_late(config, host, port, limit)) from None
    await _ring(config, transport, devices, peers)
    group.held += listeners
    return group


def _late(config: Config, host: str, port: str, limit: float) -> str:
    if config.rank:
        return (
            f"torch.distributed.DistNetworkError: The client socket has timed out after {limit * 1000:.0f}ms "
            f"while trying to connect to ({host}, {port})."
        )
    return (
        f"torch.distributed.DistStoreError: Timed out after {limit + 1:.0f} seconds waiting for clients. "
        f"{config.nnodes} expected."
    )


async def _host(config: Config, host: str, port: int, me: Message, group: ProcessGroup) -> list[Message]:
    arrivals = Arrivals(config, me)
    try:
        server = await asyncio.start_server(arrivals.take, host, port)
    except OSError as error:
        number = error.errno or 0
        raise GroupError(
            "torch.distributed.DistNetworkError: The server socket has failed to listen on any local network address. "
            f"The server socket has failed to bind to {host}:{port} (errno: {number} - {os.strerror(number)})"
        ) from None
    await arrivals.complete.wait()
    came = arrivals.came
    peers = [me, *(came[rank][0] for rank in sorted(came))]
    answer = json.dumps({"error": arrivals.problem, "peers": peers}).encode() + b"\n"
    for writer in arrivals.waiting:
        writer.write(answer)
        await writer.drain()
    if arrivals.problem:
        raise GroupError(_mismatch(arrivals.problem))
    group.held += [server, came]
    group.writers = [writer for _, _, writer in came.values()]
    group.stepped = dict.fromkeys(came, 0)
    for rank, (_, reader, writer) in came.items():
        group.held.append(asyncio.create_task(_listen(group, reader, writer, rank)))
    return peers


async def _join(host: str, port: int, me: Message, group: ProcessGroup) -> list[Message]:
    source = _source()
    while True:
        try:
            reader, writer = await asyncio.open_connection(host, port, local_addr=(source, 0) if source else None)
            break
        except OSError:
            await asyncio.sleep(0.2)
    writer.write(json.dumps(me).encode() + b"\n")
    try:
        await writer.drain()
        answer = json.loads(await reader.readline())
    except (OSError, ValueError):
        raise GroupError(
            "torch.distributed.DistNetworkError: Connection was likely closed. Did the remote server shutdown or crash?"
        ) from None
    if answer["error"]:
        raise GroupError(_mismatch(answer["error"]))
    group.held += [writer, asyncio.create_task(_listen(group, reader, writer, 0))]
    peers: list[Message] = answer["peers"]
    return peers


def _mismatch(problem: str) -> str:
    return (
        "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp, invalid usage "
        f"(run with NCCL_DEBUG=WARN for details): mismatched collective: {problem}"
    )


async def _listen(group: ProcessGroup, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, rank: int) -> None:
    """What the other end says, until it is gone."""
    try:
        while line := await reader.readline():
            message = json.loads(line)
            if "step" not in message:
                group.hear(message)
            elif rank in group.stepped:
                group.stepped[rank] = message["step"]
                group.arrived.set()
            else:
                writer.write(line)
    except (OSError, ValueError):
        pass
    group.why = (
        "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp, remote process exited or there was "
        f"a network error: ncclRemoteError: connection to rank {rank} closed"
    )
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


async def _ring(config: Config, transport: str, devices: list[Device], peers: list[Message]) -> None:
    """Every rank sends to the next one over each rail."""
    following = peers[(config.rank + 1) % config.nnodes]
    if len(following["rails"]) != len(devices):
        raise GroupError(
            "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp, internal error: "
            f"rank {following['rank']} has {len(following['rails'])} rails, rank {config.rank} has {len(devices)}"
        )
    comm = f"comm 0x{config.group_hash[:9]} rank {config.rank}"
    ident = f"{comm} nranks {config.nnodes} cudaDev 0 nvmlDev 0 busId f01000 commId 0x{config.group_hash}"
    say(config.rank, f"ncclCommInitRankConfig {ident} - Init START")
    say(config.rank, f"{comm} nRanks {config.nnodes} nNodes {config.nnodes} localRanks 1 localRank 0 MNNVL 0")
    say(config.rank, f"ncclCommInitRankConfig {ident} - Init COMPLETE")
    for place, device in enumerate(devices):
        address, port = following["rails"][place]
        try:
            await asyncio.wait_for(_send(device.address, address, port), RAIL_SECONDS)
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            words = (
                f"NET/IB: Got completion from peer {address}<{port}> with status=12 opcode=0 len=0 vendor err 129 "
                f"(RETRY_EXC_ERR) localGid ::ffff:{device.address} remoteGid ::ffff:{address} hca {device.name}"
            )
            say(config.rank, words if transport == "IB" else f"socketProgress: Connection timed out {address}", "WARN")
            raise GroupError(
                "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp, remote process exited or "
                f"there was a network error: ncclRemoteError: no answer from {address} over {device.name}"
            ) from None
        if transport == "IB":
            qp = f"qpn {port} mtu 5 query_ece={{supported=0, vendor_id=0x0, options=0x0, comp_mask=0x0}}"
            say(config.rank, f"NET/IB: NCCL Dev {place} IbDev {place} Port 1 {qp} {gid_words(device)}")
        where = f"NET/{transport}/{place}"
        say(config.rank, f"Channel {place:02d}/0 : {config.rank}[0] -> {following['rank']}[0] [send] via {where}")
        previous = (config.rank - 1) % config.nnodes
        say(config.rank, f"Channel {place:02d}/0 : {previous}[0] -> {config.rank}[0] [receive] via {where}")
    say(config.rank, "Connected all rings, use ring PXN 0 GDR 0")


async def _send(source: str, target: str, port: int) -> None:
    reader, writer = await asyncio.open_connection(target, port, local_addr=(source, 0))
    writer.write(b"\0" * RAIL_BYTES)
    await writer.drain()
    await reader.readexactly(1)
    writer.close()
