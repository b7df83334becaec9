"""Ranks of the stand-in that may and may not become a group, on loopback addresses of this machine."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest

from tests.testbed.standin import config, fabric, group, rpc, run

ADDRESSES = ("127.0.0.11", "127.0.0.12", "127.0.0.13", "127.0.0.14")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((ADDRESSES[0], 0))
        return int(probe.getsockname()[1])


def rails(rank: int, count: int = 2) -> list[Any]:
    names = ("rocep1s0f0v0", "roceP2p1s0f0v0")[:count]
    return [fabric.Device(name, "lo", f"127.0.{place + 1}.{rank + 11}") for place, name in enumerate(names)]


def rank_config(rank: int, port: int, nnodes: int = 4, **other: Any) -> Any:
    shared = {"nnodes": nnodes, "tp": nnodes, "meet": f"{ADDRESSES[0]}:{port}", "meet_seconds": 5, **other}
    values = {"node_rank": rank, "port": 30000 + rank, **{k: v for k, v in shared.items() if k != "rank"}}
    return config(rank=rank, values=values, **shared)


async def meet(*ranks: tuple[Any, str, list[Any]]) -> list[Any]:
    """What became of each rank: its group, or the words it ended with."""

    async def one(cfg: Any, transport: str, devices: list[Any]) -> Any:
        try:
            return await group.form(cfg, transport, devices)
        except group.GroupError as error:
            return str(error)

    return await asyncio.gather(*(one(*rank) for rank in ranks))


def test_four_equal_ranks_form_a_group_and_hear_rank_0() -> None:
    async def work() -> None:
        port = free_port()
        formed = await meet(*((rank_config(n, port), "IB", rails(n)) for n in range(4)))
        assert all(isinstance(one, group.ProcessGroup) for one in formed)
        heard: list[Any] = []
        formed[2].hear = heard.append
        formed[0].tell({"begun": 3, "running": 1})
        await asyncio.sleep(0.1)
        assert heard == [{"begun": 3, "running": 1}]

    run(work())


def test_when_one_rank_goes_the_group_is_broken_everywhere() -> None:
    async def work() -> None:
        port = free_port()
        formed = await meet(*((rank_config(n, port, 2), "IB", rails(n)) for n in range(2)))
        formed[1].held[0].close()  # its connection to rank 0, as the kernel closes it for a dead process
        await asyncio.wait_for(formed[0].broken.wait(), 2)
        assert "ncclRemoteError" in formed[0].why

    run(work())


@pytest.mark.parametrize(
    ("odd", "words"),
    [
        ({"tp": 4}, "tp 4"),
        ({"ep": 4}, "another configuration"),
        ({"model": "other/model"}, "another configuration"),
        ({"context": 8192}, "another configuration"),
    ],
)
def test_a_rank_with_another_launch_never_joins(odd: dict[str, Any], words: str) -> None:
    async def work() -> None:
        port = free_port()
        formed = await meet((rank_config(0, port, 2), "IB", rails(0)), (rank_config(1, port, 2, **odd), "IB", rails(1)))
        for one in formed:
            assert "mismatched collective" in one and words in one

    run(work())


def test_host_and_port_may_differ_between_ranks() -> None:
    left, right = rank_config(0, 1), rank_config(3, 1)
    assert left.values != right.values
    assert left.group_hash == right.group_hash


def test_two_ranks_of_one_number_are_refused() -> None:
    async def work() -> None:
        port = free_port()
        formed = await meet(*((rank_config(n, port, 3), "IB", rails(n)) for n in (0, 1, 1)))
        assert all("two processes say that they are rank 1" in one for one in formed)

    run(work())


def test_a_missing_rank_ends_the_others_in_time() -> None:
    async def work() -> None:
        port = free_port()
        both = [(rank_config(n, port, 3, meet_seconds=1), "IB", rails(n)) for n in (0, 1)]
        first, second = await meet(*both)
        assert "Timed out after 2 seconds waiting for clients. 3 expected" in first
        assert "torch.distributed" in second

    run(work())


def test_nobody_at_the_address_is_a_client_timeout() -> None:
    async def work() -> None:
        (only,) = await meet((rank_config(1, free_port(), 2, meet_seconds=1), "IB", rails(1)))
        assert "The client socket has timed out after 1000ms while trying to connect to (127.0.0.11," in only

    run(work())


def test_rank_0_must_own_the_rendezvous_address() -> None:
    async def work() -> None:
        cfg = rank_config(0, 1, 2, meet="203.0.113.7:20000")
        (only,) = await meet((cfg, "IB", rails(0)))
        assert "Cannot assign requested address" in only and "203.0.113.7:20000" in only

    run(work())


def test_every_rank_needs_as_many_rails() -> None:
    async def work() -> None:
        port = free_port()
        formed = await meet(
            (rank_config(0, port, 2), "IB", rails(0)), (rank_config(1, port, 2), "IB", rails(1, count=1))
        )
        assert all("rails" in one for one in formed)

    run(work())


def test_ranks_on_different_networks_do_not_meet() -> None:
    async def work() -> None:
        port = free_port()
        socket_rail = [fabric.Device("socket", "lo", "127.0.0.12")]
        formed = await meet((rank_config(0, port, 2), "IB", rails(0)), (rank_config(1, port, 2), "Socket", socket_rail))
        assert all("uses network Socket" in one for one in formed)

    run(work())


@pytest.mark.parametrize(
    ("wanted", "name", "hit"),
    [
        ("", "rocep1s0f0", True),
        ("rocep1s0f0", "rocep1s0f0v1", True),
        ("=rocep1s0f0", "rocep1s0f0v1", False),
        ("=rocep1s0f0v0,roceP2p1s0f0v0", "roceP2p1s0f0v0", True),
        ("=rocep1s0f0v0:1", "rocep1s0f0v0", True),
        ("^rocep1s0f0", "rocep1s0f0v0", False),
        ("^=rocep1s0f0", "rocep1s0f0v0", True),
    ],
)
def test_devices_are_chosen_by_ncclss_own_matching(wanted: str, name: str, hit: bool) -> None:
    assert fabric.matches(name, wanted) is hit


def test_llama_server_borrows_from_each_rpc_server_and_knows_when_one_goes(capsys: pytest.CaptureFixture[str]) -> None:
    async def work() -> None:
        port, broken = free_port(), asyncio.Event()
        server = await rpc.lend({"host": ADDRESSES[0], "port": port})
        held = await rpc.borrow(f"{ADDRESSES[0]}:{port}", broken)
        assert not broken.is_set() and len(held) == 2, "nothing is said before the next request"
        assert f"RPC[{ADDRESSES[0]}:{port}]" in capsys.readouterr().out
        server.close()
        held[0].close()
        await asyncio.wait_for(broken.wait(), 2)

    run(work())


def test_an_rpc_server_that_is_not_there_ends_llama_server_at_once() -> None:
    with pytest.raises(rpc.RpcError, match=r"Failed to connect to 127\.0\.0\.11:") as ended:
        run(rpc.borrow(f"{ADDRESSES[0]}:{free_port()}", asyncio.Event()))
    assert ended.value.status == 139


def test_an_rpc_server_needs_its_address() -> None:
    with pytest.raises(rpc.RpcError, match=r"Failed to create server socket on"):
        run(rpc.lend({"host": "203.0.113.7"}))
