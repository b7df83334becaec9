"""A pod's GPU is looked for before its engine starts: six starts ended in "no known cause" without one (2026-11)."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from sparkloom.inputs import profile
from sparkloom.inputs.inventory import load as inventory
from sparkloom.launch.resolve import resolve
from sparkloom.onnode.host import gpu
from sparkloom.onnode.rank import causes
from sparkloom.render.manifests import supervision
from tests.onnode.rank.ranks import REPO, Ranks

SOLO = "nvidia--nemotron-3-super-120b-a12b-nvfp4--vllm-1node"
PATTERNS = json.loads(supervision.patterns("sglang"))
# A driver's library in C: `code` is what cuInit says, `text` how it is called there.
DRIVER = """
#include <unistd.h>
int cuInit(unsigned flags) {{ sleep({sleeps}); return {code}; }}
int cuDeviceGetCount(int *count) {{ *count = {count}; return 0; }}
int cuGetErrorString(int code, const char **text) {{ *text = "{text}"; return 0; }}
"""


def driver(folder: Path, code: int = 0, count: int = 1, text: str = "", sleeps: int = 0) -> None:
    """The driver's library in that folder."""
    if not shutil.which("gcc"):
        pytest.skip("no gcc here")
    source = DRIVER.format(code=code, count=count, text=text, sleeps=sleeps)
    words = ["gcc", "-w", "-shared", "-fPIC", "-x", "c", "-", "-o", str(folder / "libcuda.so.1")]
    subprocess.run(words, input=source, text=True, check=True)


def look(monkeypatch: pytest.MonkeyPatch, folder: Path, patience: float = gpu.PATIENCE) -> str:
    monkeypatch.setenv("LD_LIBRARY_PATH", str(folder))
    return causes.named([gpu.missing(patience)], PATTERNS)


def test_a_pod_without_a_gpu_is_refused_within_ten_seconds_and_no_engine_starts(tmp_path: Path) -> None:
    ranks, begun = Ranks(tmp_path, 1), time.monotonic()
    ranks.plan |= {"gpu": True, "patterns": PATTERNS}
    try:
        ranks.start()
        ranks.until(0, "refused", "gpu-not-in-container", seconds=10)
        assert time.monotonic() - begun < 10
        cause = ranks.status(0)["cause"]
        assert "runtimeClassName nvidia" in cause and "device plugin" in cause and "nvidia-smi" in cause
        assert "engine: started" not in ranks.log(0) and "the others" not in ranks.log(0)
        assert "gpu-not-in-container" in (tmp_path / "words0").read_text()
    finally:
        ranks.end()


def test_a_gpu_that_comes_later_is_seen(tmp_path: Path) -> None:
    ranks, late = Ranks(tmp_path, 1), tmp_path / "late"
    late.mkdir()
    ranks.plan |= {"gpu": True, "patterns": PATTERNS}
    try:
        ranks.start(LD_LIBRARY_PATH=str(late))
        ranks.until(0, "refused", "gpu-not-in-container")
        driver(late)
        ranks.wait(ranks.serving)
        assert not ranks.status(0)["cause"]
    finally:
        ranks.end()


def test_a_group_of_one_does_not_wait_for_the_others(tmp_path: Path) -> None:
    ranks = Ranks(tmp_path, 1)
    try:
        ranks.mode(0, "crash RuntimeError: of its own")
        ranks.start()
        ranks.wait(lambda: ranks.log(0).count("engine: started") > 2)
        assert "the others" not in ranks.log(0)
    finally:
        ranks.end()


@pytest.mark.parametrize(
    ("told", "rule", "word"),
    [
        ({"code": 100, "text": "no CUDA-capable device is detected"}, "gpu-not-in-container", "device plugin"),
        ({"count": 0}, "gpu-not-in-container", "device plugin"),
        (
            {"code": 803, "text": "system has unsupported display driver / cuda driver combination"},
            "driver-too-old",
            "",
        ),
        ({"code": 999, "text": "unknown error"}, "", "CUDA error 999: unknown error"),
    ],
)
def test_what_the_driver_says_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: dict[str, Any], rule: str, word: str
) -> None:
    driver(tmp_path, **told)
    said = look(monkeypatch, tmp_path)
    assert said.startswith(rule) and word in said


def test_a_driver_that_hangs_is_named_and_a_gpu_is_no_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    driver(tmp_path, sleeps=9)
    assert "did not answer in 1 s" in look(monkeypatch, tmp_path, patience=1)
    driver(tmp_path)
    assert not look(monkeypatch, tmp_path, patience=30)


def test_engines_on_processors_do_not_look_for_a_gpu() -> None:
    for where, wanted in (("gb10", True), ("kind", False), ("bare", False), ("vm", False)):
        launch = resolve(profile.load(SOLO), inventory(REPO / f"inventories/{where}/hosts.yml"))
        assert supervision.plan(launch, "refuse")["gpu"] is wanted, where
