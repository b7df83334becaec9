"""Where the pack lies, what is left of the time, and what a run told: one JSON, and the logs beside it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(os.environ.get("SPARKLOOM_GPU_ROOT", "/opt/sparkloom-gpu"))
SITE, BIN, LIB, PRODUCT, RENDERED = (ROOT / name for name in ("site", "bin", "lib", "product", "rendered"))
MODELS = Path("/var/lib/sparkloom/hub")
OUT = Path(os.environ.get("OUT") or ROOT / "out")
RUN = OUT / "run.json"
SECONDS = float(os.environ.get("SPARKLOOM_GPU_SECONDS", "3600"))
BEGUN = float(os.environ.setdefault("SPARKLOOM_GPU_BEGUN", str(time.time())))
# NVLink multicast can put a host's GPUs out of service that others share.
QUIET = {"NCCL_NVLS_ENABLE": "0", "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1", "NVSHMEM_DISABLE_NVLS": "1"}


def absent() -> str:
    """Why nothing can be shown here; empty on a machine with a GPU and the pack."""
    if not shutil.which("nvidia-smi"):
        return "no GPU here (no nvidia-smi)"
    return "" if PRODUCT.is_dir() else f"no pack at {ROOT}: make gpu-pack, then its test-gpu.sh"


def left() -> float:
    return SECONDS - (time.time() - BEGUN)


def done(words: Sequence[str | Path] | str, timeout: float = 60, **more: str) -> tuple[int, str]:
    """How a command ended, and all that it said; late is 124."""
    shell = isinstance(words, str)
    try:
        said = subprocess.run(
            words, shell=shell, capture_output=True, text=True, errors="replace",
            timeout=min(timeout, max(5.0, left())), env={**os.environ, **more}, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        return 124, str(error.stdout or b"")
    return said.returncode, said.stdout + said.stderr


def python(program: str, timeout: float = 60, **more: str) -> tuple[int, str]:
    """A program with the product on its path."""
    return done([sys.executable, "-c", program], timeout, PYTHONPATH=str(PRODUCT / "scripts"), **more)


def gpus() -> list[str]:
    return [line for line in done("nvidia-smi -L")[1].splitlines() if line.startswith("GPU ")]


def smi(fields: str) -> list[list[str]]:
    said = done(["nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader,nounits"])[1]
    return [[word.strip() for word in line.split(",")] for line in said.splitlines()]


def tell(stage: str, facts: Mapping[str, Any]) -> None:
    """One more thing that this run showed."""
    OUT.mkdir(parents=True, exist_ok=True)
    told = json.loads(RUN.read_text()) if RUN.exists() else {}
    told[stage] = {**told.get(stage, {}), **facts}
    RUN.write_text(json.dumps(told, indent=1, sort_keys=True) + "\n")
