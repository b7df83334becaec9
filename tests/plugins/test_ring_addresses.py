"""Three network namespaces cabled in a ring, with the addresses and routes that the product renders for pods.

What walks over them: the ranks' own echoes (onnode/rank/path.py, unmodified), and TCP groups that meet as Gloo's do,
each rank at one address. Not RDMA, and no NCCL: a veth has neither.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sparkloom.inputs import profile
from sparkloom.inputs.cluster import Cluster
from sparkloom.launch.resolve import resolve
from sparkloom.onnode.now.labels import NETWORKS
from sparkloom.render import manifests
from sparkloom.render.manifests import supervision
from testbed.base.shell import out
from testbed.beds.cabling import INNER, OUTER, Bench, halves
from tests.launch.test_ring import PIPELINE, RING, site
from tests.namespaces import needs_namespaces
from tests.places import REPO

pytestmark = needs_namespaces
PORT = 29500
MTU = 1500  # of a veth and a bridge as they are made
# A rank: echoes on all its rails, and one address at which the others meet it, as Gloo and NCCL's bootstrap do it.
RANK = """
import asyncio, json, socket, sys
from sparkloom.onnode.rank import path, rails
from sparkloom.onnode.rank.plan import GroupPlan

told = json.loads(sys.stdin.readline())
order, rank = GroupPlan.of(told["plan"]), told["rank"]
mine = order.member(rank)

async def meets(other, bound):
    plug = socket.socket()
    plug.setblocking(False)
    if bound:
        plug.bind((mine.address, 0))
    try:
        await asyncio.wait_for(asyncio.get_running_loop().sock_connect(plug, (other.address, told["port"])), 2)
        reader, writer = await asyncio.open_connection(sock=plug)
        writer.write(b"who?")
        return list(await asyncio.wait_for(reader.readexactly(5), 2))[-1]
    except (OSError, asyncio.TimeoutError) as error:
        return type(error).__name__

async def sends(other, size):
    reader, writer = await asyncio.open_connection(other.address, told["port"])
    writer.write(b"take" + bytes(size))
    await reader.readexactly(5)
    writer.close()

async def swallows(reader, writer):
    word = await reader.readexactly(4)
    if word == b"take":
        await reader.readexactly(told["size"])
    writer.write(word + bytes([rank]))
    await writer.drain()

async def main():
    lines = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    rails.mend(order, rank)
    echoes = await path.listen(order, rank, "group")
    await asyncio.start_server(swallows, mine.address, told["port"])
    print("ready", flush=True)
    while word := (await lines.readline()).decode().strip():
        others = [member for member in order.members if member is not mine]
        if word == "look":
            met = {str(m.rank): [await meets(m, bound) for bound in (False, True)] for m in others}
            print(json.dumps({"faults": await path.faults(order, rank, echoes), "met": met}), flush=True)
        else:
            await sends(order.member(int(word)), told["size"])
            print("sent", flush=True)

asyncio.run(main())
"""
SIZE = 4 << 20
WHO_HAS = """
import socket, struct, sys, time

port, mine, wanted = sys.argv[1:]
wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0806))
wire.bind((port, 0x0806))
mac = wire.getsockname()[4]
mine, wanted = socket.inet_aton(mine), socket.inet_aton(wanted)
asked = struct.pack("!HHBBH6s4s6s4s", 1, 0x0800, 6, 4, 1, mac, mine, bytes(6), wanted)
wire.send(b"\\xff" * 6 + mac + b"\\x08\\x06" + asked)
wire.settimeout(0.2)
answers, until = set(), time.monotonic() + 1
while time.monotonic() < until:
    try:
        frame = wire.recv(2048)
    except TimeoutError:
        continue
    if frame[20:22] == b"\\x00\\x02" and frame[28:32] == wanted:
        answers.add(frame[22:28].hex(":"))
print(*sorted(answers))
"""


def put(bench: Bench, where: Cluster, name: str = PIPELINE) -> dict[str, Any]:
    """What Multus, host-device and the static IPAM would do with the rendered pods, and the group's plan."""
    launch = resolve(profile.load(name), where)
    objects = manifests.build(launch, where, "refuse")[0]
    routes = {
        item["metadata"]["name"]: json.loads(item["spec"]["config"])["plugins"][0]["ipam"].get("routes", [])
        for item in objects
        if item["kind"] == "NetworkAttachmentDefinition"
    }
    pods = [item["spec"]["template"]["metadata"] for item in objects if item["kind"] == "StatefulSet"]
    for place, pod in zip(launch.topology.places, pods, strict=True):
        lines = [f"address flush dev {end.pf}" for end in place.endpoints]
        for end, asked in zip(place.endpoints, json.loads(pod["annotations"][NETWORKS]), strict=True):
            lines += [f"address add {cidr} dev {end.pf}" for cidr in asked["ips"]]
            lines += [f"route add {route['dst']} via {route['gw']} dev {end.pf}" for route in routes[asked["name"]]]
        bench.configure(place.node.name, *lines)
    plan = supervision.plan(launch, "refuse")
    for place, member in zip(launch.topology.places, plan["members"], strict=True):
        for end, rail in zip(place.endpoints, member["rails"], strict=True):
            rail["interface"] = end.pf  # net1 to net4 in a pod
    return plan


class Ranks:
    def __init__(self, bench: Bench, plan: dict[str, Any]) -> None:
        environ = {**os.environ, "PYTHONPATH": f"{REPO}/scripts"}
        self.running: list[subprocess.Popen[str]] = []
        for rank, member in enumerate(plan["members"]):
            process = subprocess.Popen(
                [*bench.inside(member["node"]), sys.executable, "-c", RANK], env=environ, text=True,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            )  # fmt: skip
            self.running.append(process)
            self.tell(rank, json.dumps({"plan": plan, "rank": rank, "port": PORT, "size": SIZE}))
        for rank in range(len(self.running)):
            assert self.answer(rank) == "ready"

    def tell(self, rank: int, line: str) -> None:
        print(line, file=self.running[rank].stdin, flush=True)

    def answer(self, rank: int) -> str:
        return self.running[rank].stdout.readline().strip()  # type: ignore[union-attr]

    def look(self) -> list[dict[str, Any]]:
        for rank in range(len(self.running)):
            self.tell(rank, "look")
        return [json.loads(self.answer(rank)) for rank in range(len(self.running))]

    def send(self, rank: int, to: int) -> None:
        self.tell(rank, str(to))
        assert self.answer(rank) == "sent"

    def close(self) -> None:
        for process in self.running:
            process.kill()
            process.wait()


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(RING, tmp_path)
    try:
        made.reverse_path(1)
        yield made
    finally:
        made.close()


def cabled(bench: Bench, ring: tuple[str, ...] = RING) -> None:
    for node, following in zip(ring, (*ring[1:], ring[0]), strict=True):
        bench.cable((node, INNER), (following, OUTER))


@pytest.fixture
def ranks(bench: Bench) -> Iterator[Ranks]:
    cabled(bench)
    made = Ranks(bench, put(bench, site(attach="pf", mtu=MTU)))
    try:
        yield made
    finally:
        made.close()


def test_every_rank_meets_both_others_at_one_address_and_every_rail_answers(ranks: Ranks) -> None:
    """With strict reverse paths, from the address of the outgoing port and from the rank's own."""
    for rank, told in enumerate(ranks.look()):
        assert told["faults"] == []
        assert told["met"] == {str(other): [other, other] for other in range(3) if other != rank}


def test_each_half_answers_for_its_own_address_alone(bench: Bench, ranks: Ranks) -> None:
    """Both halves of a cage are on one wire. Red before: two MACs answered, and RDMA went to whichever came first."""
    bench.reverse_path(2)
    words = [*bench.inside(RING[1]), sys.executable, "-c", WHO_HAS, halves(OUTER)[0].netdev]
    answers = out([*words, "192.168.100.12", "192.168.100.11"]).split()
    (link,) = json.loads(out([*bench.inside(RING[0]), "ip", "-json", "link", "show", halves(INNER)[0].netdev]))
    assert answers == [link["address"]]


def test_bytes_go_over_the_cable_that_joins_the_two_and_no_other(bench: Bench, ranks: Ranks) -> None:
    for one, other, cable in ((0, 1, 0), (1, 0, 0), (1, 2, 1), (2, 1, 1), (2, 0, 2), (0, 2, 2)):
        before = bench.carried()
        ranks.send(one, other)
        moved = [after - start for after, start in zip(bench.carried(), before, strict=True)]
        assert moved[cable] >= SIZE, (one, other, moved)
        assert all(size < SIZE / 100 for number, size in enumerate(moved) if number != cable), (one, other, moved)


def test_a_pulled_cable_parts_its_pair_alone(bench: Bench, ranks: Ranks) -> None:
    bench.pull(0)  # spark1's inner to spark2's outer cage: nobody forwards for them
    first, second, third = ranks.look()
    assert first["met"]["1"] == second["met"]["0"] and not isinstance(first["met"]["1"][0], int)
    assert first["met"]["2"] == [2, 2] and second["met"]["2"] == [2, 2]
    assert (third["met"], third["faults"]) == ({"0": [0, 0], "1": [1, 1]}, [])
    assert [fault.split(" (")[0] for fault in first["faults"]] == [
        "rail a1 to rank 1 on spark2", "rail b1 to rank 1 on spark2",
    ]  # fmt: skip


def test_another_ring_than_the_told_one_reaches_nobody(bench: Bench) -> None:
    """So the read-back of the rails refuses it: fabric.ring is in the order of the cables."""
    cabled(bench, (RING[0], RING[2], RING[1]))
    made = Ranks(bench, put(bench, site(attach="pf", mtu=MTU)))
    try:
        for told in made.look():
            assert len(told["faults"]) == 4
            assert not any(isinstance(met, int) for pair in told["met"].values() for met in pair)
    finally:
        made.close()
