"""Do frames of the planned size reach every peer over every rail? Echoes by UDP that may not be fragmented."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Collection
from functools import partial
from typing import Any

from sparkloom.onnode.rank.plan import GroupPlan, Member, Rail

IP_MTU_DISCOVER, IP_PMTUDISC_PROBE = 10, 3  # never fragment, and do not trust a remembered path
OVERHEAD = 28  # IPv4 and UDP headers
SMALL = 64
TRIES, WAIT = 3, 0.5


class Echo(asyncio.DatagramProtocol):
    """Sends back what begins with the group's own mark to who is planned on this rail, and collects what comes back."""

    def __init__(self, mark: bytes, planned: Collection[str]) -> None:
        self.mark, self.planned = mark, planned
        self.seen: set[tuple[str, int]] = set()  # address and size that came back
        self.transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # before Python 3.12 no DatagramTransport by class

    def datagram_received(self, data: bytes, peer: tuple[str | Any, int]) -> None:
        if peer[0] not in self.planned:
            return
        if data.startswith(b"?" + self.mark) and self.transport:
            self.transport.sendto(b"!" + data[1:], peer)
        elif data.startswith(b"!" + self.mark):
            self.seen.add((str(peer[0]), len(data)))

    def error_received(self, error: Exception) -> None:
        pass  # no answer says the same


async def listen(plan: GroupPlan, rank: int, mark: str) -> dict[str, Echo]:
    """One socket on each of this rank's rails."""
    echoes = {}
    for rail in plan.member(rank).rails:
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sock.setsockopt(socket.IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE)
        sock.setblocking(False)
        sock.bind((rail.address, plan.control_port))
        ends = {end.address for member in plan.members for end in member.rails if end.name == rail.name}
        made = partial(Echo, mark.encode()[:32], ends)
        _, echo = await asyncio.get_running_loop().create_datagram_endpoint(made, sock=sock)
        echoes[rail.name] = echo
    return echoes


async def faults(plan: GroupPlan, rank: int, echoes: dict[str, Echo]) -> list[str]:
    """One sentence per rail and peer that full frames do not reach."""
    others = [member for member in plan.members if member.rank != rank]
    ends = [(member, rail) for member in others for rail in member.rails if rail.name in echoes]
    return [text for text in await asyncio.gather(*(_probe(plan, echoes[r.name], m, r) for m, r in ends)) if text]


async def _probe(plan: GroupPlan, echo: Echo, member: Member, rail: Rail) -> str:
    full = rail.mtu - OVERHEAD
    if await _comes_back(plan, echo, rail, full):
        return ""
    where = f"rail {rail.name} to {member} ({rail.address})"
    if await _comes_back(plan, echo, rail, SMALL):
        return (
            f"{where}: small frames pass, frames of {rail.mtu} bytes do not: "
            "the switch or the other end has a smaller MTU; run playbooks/fabric.yml"
        )
    return f"{where}: no answer; is its cable in, is its supervisor up (its own log says)?"


async def _comes_back(plan: GroupPlan, echo: Echo, rail: Rail, size: int) -> bool:
    echo.seen.discard((rail.address, size))
    for _ in range(TRIES):
        echo.transport.sendto((b"?" + echo.mark).ljust(size, b"."), (rail.address, plan.control_port))
        for _ in range(10):
            await asyncio.sleep(WAIT / 10)
            if (rail.address, size) in echo.seen:
                return True
    return False
