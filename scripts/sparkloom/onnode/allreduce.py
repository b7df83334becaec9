"""An all-reduce of growing size over all ranks. Runs in the engine's image, one process a pod; needs torch alone.

With ALLREDUCE_BACKEND=gloo the same over TCP, by processors alone: beside it stand what one TCP stream carries from
each rank to the next, and how many bytes left by which interface, since no log of gloo's says which way it took.

RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT say who and where, ALLREDUCE_ADDRESS where this rank is. Rank 0 prints
one JSON line for each size, and one that begins with {"allreduce" at the end; every rank prints a line with "error"
when it fails. Small sizes show the latency that every decode step pays, large ones the bandwidth that prefill gets:
busbw = bytes * 2 (n - 1) / n / seconds.
"""

from __future__ import annotations

import datetime
import importlib
import json
import os
import socket
import time
from pathlib import Path
from typing import Any

MEBI = 1 << 20
SMALLEST, LARGEST = 8 << 10, 1 << 30
TCP_SECONDS = 1.0


def sizes(largest: int) -> list[int]:
    """8 KiB to the largest, four times more each."""
    chosen: list[int] = []
    size = SMALLEST
    while size <= largest:
        chosen.append(size)
        size *= 4
    return chosen if chosen[-1] == largest else [*chosen, largest]


def sent() -> dict[str, int]:
    """Bytes that left this pod, by interface."""
    interfaces = [path for path in Path("/sys/class/net").iterdir() if path.name != "lo"]
    return {path.name: int((path / "statistics/tx_bytes").read_text()) for path in interfaces}


class Wire:
    """What one TCP stream carries from each rank to the next over the first rail, one pair after the other."""

    def __init__(self, dist: Any, rank: int, world: int, address: str) -> None:
        self.dist, self.rank, self.world, self.mine = dist, rank, world, address
        self.door = socket.create_server((address, 0))
        self.doors: list[Any] = [None] * world
        dist.all_gather_object(self.doors, self.door.getsockname())

    def slowest(self) -> float:
        """GB/s of the slowest pair."""
        found = 0.0
        for number in range(self.world):
            self.dist.barrier()
            if number == self.rank:
                found = self._send(self.doors[(number + 1) % self.world])
            elif (number + 1) % self.world == self.rank:
                self._take()
        every: list[Any] = [None] * self.world
        self.dist.all_gather_object(every, found)
        return float(min(every))

    def _send(self, where: tuple[str, int]) -> float:
        piece, begun, count = bytes(MEBI), time.perf_counter(), 0
        with socket.create_connection(where, timeout=30, source_address=(self.mine, 0)) as wire:
            while time.perf_counter() - begun < TCP_SECONDS:
                wire.sendall(piece)
                count += MEBI
            wire.shutdown(socket.SHUT_WR)
            wire.recv(1)  # the other end has all of it
            return count / (time.perf_counter() - begun) / 1e9

    def _take(self) -> None:
        self.door.settimeout(30)
        wire, _ = self.door.accept()
        room = bytearray(MEBI)
        with wire:
            while wire.recv_into(room):
                pass


def say(data: dict[str, Any]) -> None:
    print(json.dumps(data), flush=True)


class Sweep:
    def __init__(self, torch: Any, backend: str, rank: int, world: int) -> None:
        self.torch, self.dist, self.rank, self.world = torch, torch.distributed, rank, world
        self.device = torch.device("cuda", torch.cuda.current_device()) if backend == "nccl" else torch.device("cpu")

    def wait(self) -> None:
        if self.device.type == "cuda":
            self.torch.cuda.synchronize()

    def check(self) -> None:
        """Every rank adds its number plus one: a sum that is wrong is worse than one that is slow."""
        tensor = self.torch.full((SMALLEST,), float(self.rank + 1), device=self.device)
        self.dist.all_reduce(tensor)
        wanted = self.world * (self.world + 1) / 2
        if not bool((tensor == wanted).all()):
            raise ValueError(f"the sum is {tensor.flatten()[0].item()}, {wanted} is right")

    def measure(self, size: int) -> dict[str, Any]:
        tensor = self.torch.zeros(size // 4, dtype=self.torch.float32, device=self.device)
        # many for what takes microseconds, few for what takes a tenth of a second
        warm, measured = (20, 200) if size <= MEBI else (5, 40) if size <= 64 * MEBI else (2, 10)
        for _ in range(warm):
            self.dist.all_reduce(tensor)
        self.wait()
        self.dist.barrier()
        self.wait()
        begun = time.perf_counter()
        for _ in range(measured):
            self.dist.all_reduce(tensor)
        self.wait()
        seconds = (time.perf_counter() - begun) / measured
        slowest = self.torch.tensor([seconds], device=self.device)
        self.dist.all_reduce(slowest, op=self.dist.ReduceOp.MAX)
        seconds = slowest.item()
        busbw = size * 2 * (self.world - 1) / self.world / seconds
        return {"bytes": size, "us": round(seconds * 1e6, 2), "busbw_gb_s": round(busbw / 1e9, 3), "rounds": measured}


def main(words: list[str]) -> int:
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    backend = os.environ.get("ALLREDUCE_BACKEND", "nccl")
    patience = float(os.environ.get("ALLREDUCE_SECONDS", "300"))
    try:
        torch: Any = importlib.import_module("torch")

        if backend == "nccl":
            torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
        torch.distributed.init_process_group(backend, timeout=datetime.timedelta(seconds=patience))
        sweep = Sweep(torch, backend, rank, world)
        sweep.check()
        rows, before = [], sent() if backend == "gloo" else {}
        for size in sizes(int(os.environ.get("ALLREDUCE_LARGEST", LARGEST))):
            rows.append(sweep.measure(size))
            if rank == 0:
                say({"size": rows[-1]})
        over: dict[str, Any] = {}
        if backend == "gloo":
            moved: list[Any] = [None] * world
            torch.distributed.all_gather_object(moved, {name: now - before[name] for name, now in sent().items()})
            wire = Wire(torch.distributed, rank, world, os.environ["ALLREDUCE_ADDRESS"])
            over = {"sent": moved, "tcp_gb_s": round(wire.slowest(), 3)}
        version = ".".join(map(str, torch.cuda.nccl.version())) if backend == "nccl" else None
        if rank == 0:
            known = {"ranks": world, "backend": backend, "nccl": version, "torch": torch.__version__}
            say({"allreduce": {**known, **over, "sizes": rows}})
        torch.distributed.barrier()
        torch.distributed.destroy_process_group()
    except Exception as error:  # any failure is the answer: the reader has no other way to learn of it
        say({"error": f"{type(error).__name__}: {error}"[:2000], "rank": rank})
        os._exit(1)  # a rank that waits for a dead one never returns from its clean-up
    return 0
