"""NCCL over two GPUs: each way that it can take has its own verdict, by our program, our log reader and our judge."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from typing import Any

import pytest

from testbed.beds.gpu import place

RUN = "import sys; from sparkloom.onnode.allreduce import main; sys.exit(main([]))"
JUDGE = (
    "import sys, json; from sparkloom.measure.allreduce import verdict;"
    "logs = {str(n): open(p).read() for n, p in enumerate(sys.argv[1:])};"
    "print(json.dumps(verdict.judge(logs, rails=2, nodes=2)))"
)
ONE_MACHINE = (1 << 28, {}, False)
WAYS = {
    "nvlink": ONE_MACHINE,
    "sockets": (1 << 27, {"NCCL_NET": "Socket", "NCCL_SOCKET_IFNAME": "=net1,net2"}, True),
    "forced-ib": (1 << 20, {"NCCL_NET": "IB", "NCCL_SOCKET_IFNAME": "=net1", "NCCL_IB_HCA": "=rocep1s0f0v0"}, True),
}
EXPECTED = {
    "nvlink": ("wrong-transport", "local"), "sockets": ("wrong-transport", "socket"), "forced-ib": ("failed", "failed"),
}  # fmt: skip


@pytest.mark.two_gpus
@pytest.mark.takes(60)
@pytest.mark.parametrize("way", WAYS)
def test_each_way_has_its_verdict(way: str, nets: None) -> None:
    largest, env, apart = WAYS[way]
    logs = [place.OUT / f"nccl-{way}-{rank}.log" for rank in (0, 1)]
    place.OUT.mkdir(parents=True, exist_ok=True)
    ranks, begun = [], time.monotonic()
    for rank, log in enumerate(logs):
        told = {
            **os.environ, **place.QUIET, **env, "PYTHONPATH": str(place.PRODUCT / "scripts"), "RANK": str(rank),
            "WORLD_SIZE": "2", "MASTER_PORT": "29555", "NCCL_DEBUG": "INFO", "ALLREDUCE_SECONDS": "40",
            "MASTER_ADDR": "192.168.100.11" if apart else "127.0.0.1", "ALLREDUCE_LARGEST": str(largest),
            **({"CUDA_VISIBLE_DEVICES": str(rank)} if apart else {"LOCAL_RANK": str(rank)}),
        }  # fmt: skip
        words = [sys.executable, "-c", RUN]
        if apart:  # a host's name of its own, by which NCCL tells two nodes apart
            named = ["unshare", "--uts", "sh", "-c", f'hostname spark{rank + 1}; exec "$@"', "x"]
            words = ["nsenter", f"--net=/var/run/netns/rank{rank}", *named, *words]
        with log.open("w") as file:
            ranks.append(subprocess.Popen(words, env=told, stdout=file, stderr=file))
    for one in ranks:
        try:
            one.wait(60)
        except subprocess.TimeoutExpired:
            one.kill()
    paths = {"PYTHONPATH": f"{place.PRODUCT / 'scripts'}:{place.SITE}"}
    code, said = place.done([sys.executable, "-c", JUDGE, *map(str, logs)], **paths)
    assert code == 0, said
    found: dict[str, Any] = json.loads(said.splitlines()[-1])
    told = {key: found.get(key) for key in ("verdict", "why", "busbw_gb_s", "latency_us", "nccl")}
    place.tell("nccl", {way: {**told, "seconds": round(time.monotonic() - begun, 1)}})
    assert (found["verdict"], found["transport"]["verdict"]) == EXPECTED[way], found
    if way == "forced-ib":
        assert "no RoCE device that NCCL_IB_HCA" in found["why"] and "rdma link" in found["why"], found["why"]
