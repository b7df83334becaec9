"""Whole pieces of logs from sixty public threads: the cause that the thread is about comes first, in whatever dress."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml

from scripts.docs import messages_page
from sparkloom.judge import diagnose, log_causes
from sparkloom.onnode import loglines
from sparkloom.onnode.rank import causes
from sparkloom.render.manifests import supervision
from tests.places import DATA, REPO

THREADS: list[dict[str, Any]] = yaml.safe_load((DATA / "log_threads.yml").read_text(encoding="utf-8"))
NOISE = log_causes.noise()
# What stands before each line of a log, by who kept it.
DRESSES = {
    "docker": "2026-06-01T10:00:00.123456789Z ",
    "kubectl": "[pod/ultra-2/engine] 2026-06-01T10:00:00.123456789Z ",
    "node": "2026-06-01T10:00:00.123456789+02:00 stderr F ",
    "compose": "\x1b[33mengine-1  | \x1b[0m",
    "journald": "Jun  1 10:00:00 spark2 engine[4711]: ",
    "copied colours": "^[[0;36m(EngineCore_DP0 pid=738)^[[0;0m ",
    "colours without escape": "[36m(RayWorkerVllm pid=5085, ip=10.0.0.2)[0m ",
}


def first(log: str) -> str:
    matches = diagnose.diagnose(log)["matches"]
    return str(matches[0]["rule"]) if matches else ""


def test_at_least_85_of_100_are_named_rightly_and_none_wrongly() -> None:
    assert len(THREADS) == 60 and len({thread["source"] for thread in THREADS}) >= 57
    assert {thread["program"] for thread in THREADS} >= {"vLLM", "SGLang", "llama.cpp", "NCCL", "K3s", "containerd"}
    assert sum("aside" in thread for thread in THREADS) == 20
    said = {thread["id"]: first(thread["log"]) for thread in THREADS}
    assert not [thread["id"] for thread in THREADS if said[thread["id"]] not in ("", thread["cause"])]
    assert sum(map(bool, said.values())) >= 0.85 * len(THREADS)


@pytest.mark.parametrize("dress", DRESSES)
def test_a_log_is_read_in_any_dress(dress: str) -> None:
    for thread in THREADS:
        dressed = "\n".join(DRESSES[dress] + line for line in thread["log"].splitlines())
        assert first(dressed) == first(thread["log"]), thread["id"]


def test_what_followed_says_from_what() -> None:
    log = next(thread["log"] for thread in THREADS if thread["id"] == "vllm-deepgemm-architecture")
    cause, then = diagnose.diagnose(log)["matches"]
    assert (cause["followed_from"], then["followed_from"]) == ("", "deepgemm-no-kernel")
    assert then["rule"] == "vllm-engine-failed" and then["line_number"] > cause["line_number"]


def test_of_two_errors_the_earlier_one_is_the_cause() -> None:
    port, memory = "OSError: [Errno 98] Address already in use", "torch.OutOfMemoryError: CUDA out of memory."
    for log in ([port, *[memory] * 9], [memory, *[port] * 9]):
        one, *others = diagnose.diagnose("\n".join(log))["matches"]
        assert one["line_number"] == 1
        assert {other["followed_from"] for other in others if other["line_number"] > 1} == {one["rule"]}


def test_a_hint_before_an_error_is_not_its_cause() -> None:
    log = "NCCL INFO Using network Socket\nValueError: No available memory for the cache blocks.\n"
    assert [(match["rule"], match["followed_from"]) for match in diagnose.diagnose(log)["matches"]] == [
        ("vllm-no-cache-memory", ""),
        ("nccl-socket-fallback", ""),
    ]


@pytest.mark.parametrize("name", NOISE)
def test_noise_is_known_and_never_a_cause(name: str) -> None:
    entry = NOISE[name]
    assert set(entry) == {"pattern", "why", "seen", "source"}
    told = diagnose.diagnose(f"{entry['seen']}\n")
    assert (told["matches"], told["lines"]) == ([], []) and [known["noise"] for known in told["noise"]] == [name]
    assert causes.named([entry["seen"]], supervision_patterns()) == ""


def test_noise_hides_no_cause() -> None:
    for thread in THREADS:
        noisy = "\n".join([*(entry["seen"] for entry in NOISE.values()), thread["log"]])
        assert first(noisy) == thread["cause"], thread["id"]


def supervision_patterns() -> list[dict[str, Any]]:
    import json

    return list(json.loads(supervision.patterns("vllm")))


@pytest.mark.parametrize(
    ("raw", "moment"),
    [
        ("2026-06-01T10:00:00.5Z x", "06-01 10:00:00.5Z"),
        ("ERROR 06-01 10:00:00 [core.py:9] x", "06-01 10:00:00"),
        ("Jun  1 10:00:00 spark2 k3s[1]: x", "06-01 10:00:00"),
        ("E0601 10:00:00.123456 77 server.go:1] x", "06-01 10:00:00.123456"),
        ("[2026-06-01 10:00:00 TP0] x", "06-01 10:00:00"),
        ("nothing of the kind", ""),
    ],
)
def test_when_a_line_was_printed(raw: str, moment: str) -> None:
    assert loglines.moment(raw).rstrip() == moment


def test_the_page_shows_what_is_said() -> None:
    page = (REPO / "docs" / "reference" / "messages.md").read_text(encoding="utf-8")
    assert page == messages_page.text(), f"stale: {messages_page.__doc__}"
    assert len(re.findall(r"^\| \[", page, re.MULTILINE)) == len(THREADS)
