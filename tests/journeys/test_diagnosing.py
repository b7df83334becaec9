"""Somebody was sent a log, or copied one out of a window: what failed first, and what only followed from it."""

from __future__ import annotations

import json

from tests.journeys.terminal import Terminal

# Docker's times, and the engine's own colours below them
COLOURED = """\
2026-11-25T19:02:10.1Z Error in cpuinfo: prctl(PR_SVE_GET_VL) failed
2026-11-25T19:02:11.1Z \x1b[36m(EngineCore pid=94)\x1b[0m INFO 11-25 19:02:11 [core.py:1] Initializing a V1 LLM engine
2026-11-25T19:02:40.2Z \x1b[36m(EngineCore pid=94)\x1b[0m \x1b[31mERROR\x1b[0m 11-25 19:02:40 [core.py:9] \
ValueError: No available memory for the cache blocks.
2026-11-25T19:02:41.9Z \x1b[36m(APIServer pid=1)\x1b[0m \
RuntimeError: Engine core initialization failed. See root cause above.
"""
WORKER = """\
[pod/glm-1/engine] 2026-11-25T19:02:39.0Z torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.
"""
HEAD = """\
[pod/glm-0/engine] 2026-11-25T19:02:12.0Z INFO loading
[pod/glm-0/engine] 2026-11-25T19:12:40.0Z [rank0]:[E ProcessGroupNCCL.cpp:563] [Rank 0] Watchdog caught \
collective operation timeout: WorkNCCL(SeqNum=2, OpType=ALLREDUCE) ran for 600059 milliseconds before timing out.
"""
K3S = """\
Jul 29 06:42:35 spark2 sh[5000]: Failed to get unit file state for nm-cloud-setup.service: No such file or directory
Jul 29 06:42:37 spark2 k3s[5015]: time="2021-07-29T06:42:37Z" level=error msg="token CA hash does not match the \
Cluster CA certificate hash: f08676bf != 8e7d49c6"
"""
NO_GPU = """\
[rank 0 epoch 1]   File "/sgl/server_args.py", line 1, in get_device
[rank 0 epoch 1] RuntimeError: No accelerator (CUDA, XPU, HPU, NPU, MUSA, MPS) is available.
"""
NO_DRIVER = "RuntimeError: Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU\n"
UNKNOWN = "".join(f"INFO step {step}\n" for step in range(200)) + "".join(
    f"engine-1  | Error: part {part} of the frobnicator is bent\n" for part in "abcdefghijklmn"
)


def test_the_first_cause_and_what_followed(sized: Terminal) -> None:
    (sized.home / "engine.log").write_text(COLOURED)
    seen = sized.type("sparkloom diagnose engine.log", 1)
    seen.has("vllm-no-cache-memory", "seen:", "fix:", "then", "vllm-engine-failed")
    assert seen.words.index("vllm-no-cache-memory") < seen.words.index("vllm-engine-failed")
    assert "seen: 2026" not in seen.words and "prctl" not in seen.words
    told = json.loads(sized.type("cat engine.log | sparkloom diagnose - --json", 1, copied=True).text)
    first, then = told["matches"]
    assert (first["rule"], first["followed_from"]) == ("vllm-no-cache-memory", "")
    assert (then["rule"], then["followed_from"]) == ("vllm-engine-failed", "vllm-no-cache-memory")
    assert [entry["noise"] for entry in told["noise"]] == ["cpuinfo-sve"] and told["lines"] == []


def test_two_nodes_logs_are_read_in_the_order_of_their_times(terminal: Terminal) -> None:
    (terminal.home / "head.log").write_text(HEAD)
    (terminal.home / "worker.log").write_text(WORKER)
    seen = terminal.type("sparkloom diagnose head.log worker.log", 1)
    assert seen.words.index("cuda-out-of-memory") < seen.words.index("collective-timeout")
    terminal.type("sparkloom diagnose head.log", 1).has("collective-timeout", "not all")


def test_what_journald_wrote_is_read_from_a_pipe(terminal: Terminal) -> None:
    (terminal.home / "k3s.log").write_text(K3S)
    seen = terminal.type("cat k3s.log | sparkloom diagnose -", 1).has("k3s-other-cluster", "fix:")
    assert "nm-cloud-setup" not in seen.words


def test_an_unknown_failure_ends_with_twelve_lines_and_how_to_report_it(sized: Terminal) -> None:
    (sized.home / "odd.log").write_text(UNKNOWN)
    seen = sized.type("sparkloom diagnose odd.log").has("no known cause", "report", "write-a-rule.md")
    assert sum("frobnicator is bent" in line for line in seen.lines) == 12
    (sized.home / "noise.log").write_text("Error in cpuinfo: prctl(PR_SVE_GET_VL) failed\nINFO fine\n")
    sized.type("sparkloom diagnose noise.log").has("no known cause", "cpuinfo-sve", "means nothing")


def test_a_pod_that_got_no_gpu_is_known_by_every_engine_s_words(terminal: Terminal) -> None:
    (terminal.home / "pod.log").write_text(NO_GPU)
    (terminal.home / "torch.log").write_text(NO_DRIVER)
    for log in ("pod.log", "torch.log"):
        seen = terminal.type(f"sparkloom diagnose {log}", 1)
        seen.has("gpu-not-in-container", "fix:", "runtimeClassName nvidia", "device plugin", "nvidia-smi")


def test_memory_that_another_process_has_is_known_by_what_torch_says_at_its_first_call(terminal: Terminal) -> None:
    """An H100 whose memory another process held (2026-11): an AcceleratorError, and no "CUDA out of memory"."""
    (terminal.home / "pod.log").write_text("torch.AcceleratorError: CUDA error: out of memory\n")
    terminal.type("sparkloom diagnose pod.log", 1).has("cuda-out-of-memory", "fix:")
