"""What a model is, as its config.json says: from the weights folder when it is there, else from what was baked in."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

DATA = Path(os.environ.get("STANDIN_DATA", "/opt/stand-in/data"))


@dataclass(frozen=True)
class Facts:
    architecture: str | None = None
    context: int | None = None  # native
    kv_heads: int | None = None
    hybrid: bool = False  # has recurrent state (Mamba, gated delta net) beside attention
    bytes_total: float | None = None  # of the checkpoint
    bytes_beside: float = 0.0  # of these: what a launch may leave on disk
    active_share: float | None = None  # of the weights, a token
    kv_values: int = 0  # numbers of K a token and KV head, over all layers
    weights_gib: dict[str, float] | None = None  # of one rank as measured, by "tp4-ep4"
    present: bool = False  # config.json was found in the weights folder


def weights(model: str) -> Path | None:
    """The newest snapshot of a model in the hub cache, or a folder given as a path."""
    if Path(model).is_absolute():
        return Path(model) if Path(model).exists() else None
    home = Path(os.environ.get("HF_HOME", "~/.cache/huggingface")).expanduser()
    cache = Path(os.environ.get("HF_HUB_CACHE") or home / "hub")
    found = sorted((cache / f"models--{model.replace('/', '--')}" / "snapshots").glob("*"))
    return found[-1] if found else None


@lru_cache
def baked() -> dict[str, dict[str, Any]]:
    try:
        known: dict[str, dict[str, Any]] = json.loads((DATA / "models.json").read_text())
    except OSError:
        return {}
    return known


def of(model: str) -> Facts:
    folder = weights(model)
    known = Facts(**baked().get(model, {}))
    try:
        config = json.loads((folder / "config.json").read_text()) if folder else None
    except (OSError, ValueError):
        config = None
    if not config:
        return known
    text = config.get("text_config") or config
    return Facts(
        architecture=(config.get("architectures") or [known.architecture])[0],
        context=text.get("max_position_embeddings") or known.context,
        kv_heads=text.get("num_key_value_heads") or known.kv_heads,
        hybrid=known.hybrid or "hybrid_override_pattern" in text or "linear_num_value_heads" in text,
        bytes_total=known.bytes_total,
        bytes_beside=known.bytes_beside,
        active_share=known.active_share,
        kv_values=known.kv_values,
        weights_gib=known.weights_gib,
        present=True,
    )
