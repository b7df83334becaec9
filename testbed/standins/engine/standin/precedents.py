"""Measured runs of the same configuration: they say how fast it is here, and what becomes of it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from standin import facts, symptoms
from standin.config import Config
from standin.releases import order
from standin.trouble import Trouble

# A setting that the launch leaves to the engine matches any row; one that both name must be equal.
NAMED = {
    "moe_runner_backend": "moe",
    "attention_backend": "attention",
    "fp4_gemm_backend": "fp4",
    "kv_cache_dtype": "kv",
    "quantization": "quantization",
}
# On another image of the same release these outcomes may be the image's, not the configuration's.
NEAR = {"mem_fraction_static": ("mem_fraction", 1.0), "context_length": ("context", 1e-6)}


@dataclass(frozen=True)
class Precedent:
    source: str = ""
    outcome: str = "ok"
    pace: dict[int, float] | None = None  # concurrent requests -> tokens a second of each
    first_token: float | None = None
    trouble: Trouble | None = None


def find(config: Config, transport: str) -> Precedent:
    """The nearest measured row, or an empty precedent."""
    if config.engine != "sglang":
        return Precedent()
    rows = [row for row in _rows() if _same(row, config, transport)]
    if not rows:
        return Precedent()
    row = min(rows, key=lambda row: _distance(row, config))
    spoken = f"{row['id']}: {row['outcome']}" + (f", {row['symptom']}" if row.get("symptom") else "")
    pace = {n: row[f"n{n}"] / n for n in (1, 4, 8, 16) if row.get(f"n{n}")}
    return Precedent(
        spoken,
        row["outcome"],
        pace or None,
        row.get("ttft_n8"),
        symptoms.trouble(row["outcome"], row.get("symptom") or "", spoken),
    )


def _rows() -> list[dict[str, Any]]:
    try:
        lines = (facts.DATA / "measured_rows.jsonl").read_text().splitlines()
    except OSError:
        return []
    return [row for row in map(json.loads, lines) if row.get("ran", True) and row["outcome"] != "unknown"]


def _same(row: dict[str, Any], config: Config, transport: str) -> bool:
    if row["model"] != config.model or order(row.get("engine_version") or "0.0.0") != order(config.release):
        return False
    if any((row.get(key) or 1) != getattr(config, key) for key in ("tp", "pp", "ep", "nnodes")):
        return False
    if row.get("transport") and row["transport"] != ("roce" if transport == "IB" else "socket"):
        return False
    for key, name in NAMED.items():
        here, there = getattr(config, name), row.get(key)
        if here not in (None, "auto") and there not in (None, "auto") and here != there:
            return False
    if row.get("disable_cuda_graph") == config.graphs:
        return False
    if config.graphs and row.get("disable_piecewise_cuda_graph") == config.piecewise:
        return False
    return _same_speculation(row.get("speculative"), config)


def _same_speculation(there: dict[str, Any] | None, config: Config) -> bool:
    here = config.speculation
    if not here or not there or not there.get("algorithm"):
        return not here and not (there and there.get("algorithm"))
    return (there.get("num_steps"), there.get("num_draft_tokens")) == (here.steps, here.draft_tokens)


def _distance(row: dict[str, Any], config: Config) -> tuple[float, ...]:
    """Nearest in memory and context, then on the very image, then the kinder one."""
    gap = sum(
        abs(row[key] - getattr(config, name)) * weight
        for key, (name, weight) in NEAR.items()
        if row.get(key) and getattr(config, name)
    )
    image = not config.image.endswith(row.get("image") or "?")
    unnamed = sum(row.get(key) is None for key in NAMED)
    return (round(gap, 3), image, unnamed, row["outcome"] != "ok", -(row.get("n8") or 0))
