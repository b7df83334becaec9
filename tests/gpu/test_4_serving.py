"""A rendered rank in its container: no GPU, one, two; what is killed comes back, what is forced is refused."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator

import pytest

from testbed.beds.gpu import models, place
from testbed.beds.gpu.pod import PROBES, Pod
from testbed.standins.hub import tiny

ONE, TWO = "gpu-recites--sglang-1node", "gpu-recites--sglang-2node"
SOCKETS = {"NCCL_NET": "Socket", "NCCL_IB_DISABLE": "1"}
COLD = 240.0  # seconds for a first token: Triton compiles


@pytest.fixture(autouse=True)
def recites(runtime: str, nets: None) -> None:
    models.provide(tiny.RECITES)


@pytest.fixture
def ending() -> Iterator[list[Pod]]:
    pods: list[Pod] = []
    yield pods
    for pod in pods:
        pod.stop()


def test_a_pod_without_a_gpu_is_refused_within_ten_seconds_with_its_cure(ending: list[Pod]) -> None:
    pod = Pod(ONE, 0, "none", gpu="void")
    ending.append(pod)
    took = pod.until(lambda: pod.status.get("phase") == "refused", 10)
    place.tell("no_gpu", {"refused_s": round(took, 1), "cause": pod.status["cause"]})
    assert "gpu-not-in-container" in pod.status["cause"] and "runtimeClassName" in pod.status["cause"]
    assert "engine: started" not in pod.lines


@pytest.mark.takes(200)
def test_one_rank_serves_text_and_comes_back_when_its_scheduler_is_killed(ending: list[Pod]) -> None:
    pod = Pod(ONE, 0, "one")
    ending.append(pod)
    first = pod.until(pod.serves, COLD)
    levels = pod.bench("-n", "1,4,16", "--max-tokens", "200")
    figures = place.done("nvidia-smi --query-compute-apps=used_memory --format=csv,noheader,nounits")[1].split()
    assert pod.ask("/ready", PROBES)[0] == 200 and "sparkloom_rank_phase" in pod.ask("/metrics", PROBES)[1]
    own = pod.ask("/metrics/engine", PROBES)[1]
    assert re.search(r"^sglang:generation_tokens_total", own, re.M), own[:500]
    os.kill(pod.schedulers()[0], 9)
    back = pod.until(lambda: pod.serves(2), 120)
    went = pod.stop()
    place.tell("tp1", {
        "first_token_s": round(first, 1), "back_s": round(back, 1), "term_s": round(went, 1), "bench": levels,
        "memory_mib": figures,
    })  # fmt: skip
    assert "scheduler" in pod.lines or "engine ended" in pod.lines


@pytest.mark.two_gpus
@pytest.mark.takes(150)
def test_two_ranks_held_to_sockets_are_refused_once_more_and_then_down(ending: list[Pod]) -> None:
    begun = time.monotonic()
    pods = [Pod(TWO, rank, "refuse", plan={"rdma": False}, env=SOCKETS) for rank in (0, 1)]
    ending += pods
    first = pods[0].until(lambda: "NCCL transport socket" in pods[0].said, 90)
    pods[0].until(lambda: pods[0].status.get("phase") == "down", 90)
    cause = pods[0].status["cause"]
    place.tell("tp2_refuse", {"first_s": round(first, 1), "down_s": round(time.monotonic() - begun, 1), "cause": cause})
    assert "failed 2 times in a row" in cause and "NCCL transport socket" in cause
    assert pods[0].said.count("engine: started") == 2


@pytest.mark.two_gpus
@pytest.mark.takes(150)
def test_two_ranks_serve_over_sockets_where_that_is_a_warning(ending: list[Pod]) -> None:
    pods = [Pod(TWO, rank, "warn", plan={"rdma": False, "policy": "warn"}, env=SOCKETS) for rank in (0, 1)]
    ending += pods
    first = pods[0].until(lambda: all(pod.serves() for pod in pods), COLD)
    levels = pods[0].bench("-n", "1,8", "--max-tokens", "200")
    os.kill(pods[0].schedulers()[-1], 9)
    back = pods[0].until(lambda: all(pod.serves(2) for pod in pods), 120)
    place.tell("tp2_warn", {"first_token_s": round(first, 1), "back_s": round(back, 1), "bench": levels})
    assert "warning: NCCL transport socket" in pods[0].lines
