"""Whole ranks of the stand-in as processes, each in a network namespace of its own with two rails."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from scripts.oracle import fetch
from sparkloom.onnode.nccl import log as nccl_log
from tests.testbed.standin import ULTRA, environment

RELEASE = "0.5.12"
HCAS = ("rocep1s0f0v0", "roceP2p1s0f0v0")
MEMORY_KB = 60_000
ITSELF = -signal.SIGKILL  # a scheduler failed: SGLang kills its own tree

pytestmark = [
    pytest.mark.oracle,
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("ip"), reason="network namespaces need root and iproute2"),
]


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


@pytest.fixture(scope="module")
def release() -> None:
    try:
        fetch.fetch("sglang", RELEASE)
        fetch.fetch_dependencies("sglang")
    except fetch.FetchError as error:
        pytest.skip(f"the release is not here and cannot be fetched: {error}")


@dataclass
class Rack:
    """Namespaces si0.. (ranks) and sib (two bridges)."""

    folder: Path
    nodes: int = 2
    running: list[subprocess.Popen[str]] = field(default_factory=list)

    def up(self) -> None:
        ip("netns", "add", "sib")
        for rail in "ab":
            ip("-n", "sib", "link", "add", f"br{rail}", "type", "bridge")
            ip("-n", "sib", "link", "set", f"br{rail}", "up")
        for node in range(self.nodes):
            ip("netns", "add", f"si{node}")
            ip("-n", f"si{node}", "link", "set", "lo", "up")
            for number, rail in enumerate("ab", 1):
                end = f"si{node}{rail}"
                ip("-n", "sib", "link", "add", end, "type", "veth", "peer", f"net{number}", "netns", f"si{node}")
                ip("-n", "sib", "link", "set", end, "master", f"br{rail}", "up")
                ip("-n", f"si{node}", "addr", "add", f"10.{number}.0.{node + 1}/24", "dev", f"net{number}")
                ip("-n", f"si{node}", "link", "set", f"net{number}", "up")
            self.devices(node)

    def ask(self, timeout: float) -> Any:
        """Four tokens of rank 0."""
        body = json.dumps({"messages": [{"role": "user", "content": "hi"}], "max_tokens": 4})
        asks = f"print(u.urlopen('http://127.0.0.1:30000/v1/chat/completions', {body!r}.encode()).read().decode())"
        return json.loads(self.inside(asks, timeout))

    def inside(self, program: str, timeout: float) -> str:
        """What it printed in rank 0's namespace; `u` is urllib.request."""
        command = ["ip", "netns", "exec", "si0", sys.executable, "-c", f"import urllib.request as u; {program}"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout)
        return done.stdout + done.stderr

    def devices(self, node: int) -> Path:
        """What a pod of the rack sees in /sys/class/infiniband."""
        top = self.folder / f"class{node}"
        for number, name in enumerate(HCAS, 1):
            port = top / name / "ports/1"
            for sub in ("gids", "gid_attrs/types", "gid_attrs/ndevs"):
                (port / sub).mkdir(parents=True)
            (port / "state").write_text("4: ACTIVE\n")
            (port / "gids/3").write_text(f"0000:0000:0000:0000:0000:ffff:0a{number:02x}:00{node + 1:02x}\n")
            (port / "gid_attrs/types/3").write_text("RoCE v2\n")
            (port / "gid_attrs/ndevs/3").write_text(f"net{number}\n")
        return top

    def start(self, rank: int, *more: str, **env: str) -> subprocess.Popen[str]:
        command = [
            "ip", "netns", "exec", f"si{rank}", sys.executable, "-m", "sglang.launch_server",
            "--model-path", ULTRA, "--tp-size", "2", "--nnodes", str(self.nodes), "--node-rank", str(rank),
            "--dist-init-addr", "10.1.0.1:20000", "--host", "127.0.0.1", "--attention-backend", "flashinfer",
            "--quantization", "modelopt_fp4", *more,
        ]  # fmt: skip
        settings = {
            "STANDIN_RELEASE": RELEASE, "STANDIN_RDMA": str(self.folder / f"class{rank}"), "STANDIN_RAIL_SECONDS": "2",
            "NCCL_NET": "IB", "NCCL_IB_HCA": "=" + ",".join(HCAS), "NCCL_SOCKET_IFNAME": "=net1",
            "GLOO_SOCKET_IFNAME": "net1", "STANDIN_FAULTS": str(self.folder / f"faults{rank}.json"),
        }  # fmt: skip
        log = (self.folder / f"log{rank}").open("w")
        process = subprocess.Popen(
            command, stdout=log, stderr=subprocess.STDOUT, text=True, env=environment(**settings | env)
        )
        self.running.append(process)
        return process

    def log(self, rank: int) -> str:
        return (self.folder / f"log{rank}").read_text()

    def until(self, rank: int, words: str, seconds: float = 40) -> str:
        end = time.monotonic() + seconds
        while words not in self.log(rank):
            assert time.monotonic() < end, f"rank {rank} never said '{words}':\n{self.log(rank)}"
            time.sleep(0.1)
        return self.log(rank)

    def down(self) -> None:
        for process in self.running:
            if process.poll() is None:
                process.kill()
            process.wait()
        for name in ["sib", *(f"si{node}" for node in range(self.nodes))]:
            with contextlib.suppress(subprocess.CalledProcessError):
                ip("netns", "del", name)


@pytest.fixture
def rack(tmp_path: Path, release: None) -> Iterator[Rack]:
    made = Rack(tmp_path)
    try:
        made.up()
        yield made
    finally:
        made.down()


SMALL = "nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-NVFP4"


def test_two_ranks_meet_over_both_rails_serve_and_end_together(rack: Rack) -> None:
    ranks = [rack.start(n, "--model-path", SMALL) for n in (0, 1)]
    for n in (0, 1):
        log = rack.until(n, "max_running_requests=")
        assert "NET/IB : Using [0]rocep1s0f0v0:1/RoCE [1]roceP2p1s0f0v0:1/RoCE" in log
        assert "Channel 00/0" in log and "via NET/IB/1" in log
    report = nccl_log.read_text(rack.log(0) + rack.log(1), nodes=2)  # it judges the logs of real ranks
    assert report.verdict == "roce"
    assert [(rank.rank, rank.hcas, rank.gid) for rank in report.ranks] == [(n, list(HCAS), 3) for n in (0, 1)]
    assert "no channel" not in report.why
    rack.until(0, "ready to roll")
    assert rack.ask(timeout=20)["usage"]["completion_tokens"] == 4
    for process in ranks:
        children = Path(f"/proc/{process.pid}/status").read_text()
        used = next(int(line.split()[1]) for line in children.splitlines() if line.startswith("VmRSS"))
        assert used < MEMORY_KB
    ranks[1].send_signal(signal.SIGKILL)
    assert ranks[0].wait(10) == ITSELF
    assert "ncclRemoteError" in rack.log(0) and "It usually means one child failed" in rack.log(0)


def test_a_rank_that_stands_still_lets_nobody_go_on(rack: Rack) -> None:
    """SGLang itself: with rank 1's scheduler frozen no token comes. Rank 0 used to go on alone."""
    ranks = [rack.start(n, "--model-path", SMALL) for n in (0, 1)]
    rack.until(0, "ready to roll")
    ranks[1].send_signal(signal.SIGSTOP)
    with pytest.raises(subprocess.TimeoutExpired):
        rack.ask(timeout=6)
    assert "503" in rack.inside("u.urlopen('http://127.0.0.1:30000/health_generate')", timeout=40)
    ranks[1].send_signal(signal.SIGCONT)
    assert rack.ask(timeout=20)["usage"]["completion_tokens"] == 4


def test_a_stop_is_quiet(rack: Rack) -> None:
    ranks = [rack.start(n, "--model-path", SMALL) for n in (0, 1)]
    rack.until(0, "ready to roll")
    ranks[0].terminate()
    assert ranks[0].wait(10) == 0


def test_a_stop_while_the_arguments_are_judged_is_heard(rack: Rack) -> None:
    rank = rack.start(0, "--model-path", SMALL)
    children = Path(f"/proc/{rank.pid}/task/{rank.pid}/children")
    end = time.monotonic() + 20
    while not children.read_text() and time.monotonic() < end:
        time.sleep(0.02)
    rank.terminate()
    assert rank.wait(10) == 143


def test_a_rail_that_is_down_ends_the_group(rack: Rack) -> None:
    ip("-n", "sib", "link", "set", "brb", "down")
    ranks = [rack.start(n, "--model-path", SMALL) for n in (0, 1)]
    assert [process.wait(40) for process in ranks] == [ITSELF, ITSELF]
    assert "RETRY_EXC_ERR" in rack.log(0) + rack.log(1)
    assert "roceP2p1s0f0v0" in rack.log(0) + rack.log(1)


def test_no_device_ends_a_rank_that_must_use_ib_and_lets_another_fall_back(rack: Rack) -> None:
    shutil.rmtree(rack.folder / "class0")
    assert rack.start(0, "--model-path", SMALL).wait(40) == ITSELF
    assert "It usually means the child failed" in rack.log(0)
    assert "NET/IB : No device found." in rack.log(0) and "Failed to initialize any NET plugin" in rack.log(0)
    shutil.rmtree(rack.folder / "class1")
    for n in (0, 1):
        rack.start(n, "--model-path", SMALL, NCCL_NET="")
    log = rack.until(0, "ready to roll")
    assert "Using network Socket" in log and "via NET/Socket/0" in log and "NET/IB/0" not in log
    assert nccl_log.read_text(log, nodes=2).verdict == "socket"


def test_another_tp_never_forms_a_group(rack: Rack) -> None:
    ranks = [rack.start(0, "--model-path", SMALL), rack.start(1, "--model-path", SMALL, "--tp-size", "4")]
    assert [process.wait(40) for process in ranks] == [ITSELF, ITSELF]
    assert "mismatched collective" in rack.log(0) and "tp 4" in rack.log(1)


def test_an_address_of_another_node_cannot_be_bound(rack: Rack) -> None:
    assert rack.start(0, "--model-path", SMALL, "--dist-init-addr", "10.1.0.2:20000").wait(40) == ITSELF
    assert "Cannot assign requested address" in rack.log(0)


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"kind": "crash", "stage": "load"}, "torch.OutOfMemoryError"),
        ({"kind": "crash", "stage": "kv"}, "Not enough memory. Please try to increase --mem-fraction-static."),
        ({"kind": "crash", "stage": "graph", "text": "AssertionError: own words"}, "AssertionError: own words"),
        ({"kind": "crash", "stage": "args"}, "asked to refuse"),
    ],
)
def test_a_fault_of_one_node_ends_both_ranks(rack: Rack, entry: dict[str, str], words: str) -> None:
    (rack.folder / "faults1.json").write_text(json.dumps([entry]))
    ranks = [rack.start(n, "--model-path", SMALL) for n in (0, 1)]
    refused = entry["stage"] == "args"  # by the server's first process: it has no child yet
    assert ranks[1].wait(40) == (1 if refused else ITSELF)
    assert words in rack.log(1)
    if not refused:
        assert ranks[0].wait(40) == ITSELF


def test_weights_that_do_not_fit_are_out_of_memory(rack: Rack) -> None:
    ranks = [rack.start(n) for n in (0, 1)]  # Ultra on two nodes
    assert [process.wait(40) for process in ranks] == [ITSELF, ITSELF]
    # whoever comes there first says so; the other may lose its peer a moment before
    assert any("CUDA out of memory" in rack.log(n) for n in (0, 1))
