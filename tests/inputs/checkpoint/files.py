"""A small checkpoint on disk: a config.json, shards with real headers and zeros behind them, and their index."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

from sparkloom.inputs.checkpoint import architectures
from sparkloom.inputs.checkpoint.config import Config

BYTES = {"BF16": 2, "F32": 4, "F8_E4M3": 1, "U8": 1}
SMALL = {
    "architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe", "hidden_size": 64, "vocab_size": 256,
    "max_position_embeddings": 4096, "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2,
    "head_dim": 16, "intermediate_size": 128, "moe_intermediate_size": 32, "num_experts": 8, "num_experts_per_tok": 2,
    "mlp_only_layers": [0], "decoder_sparse_step": 1, "tie_word_embeddings": False, "torch_dtype": "bfloat16",
}  # fmt: skip


def tensors(config: dict[str, Any]) -> dict[str, tuple[str, tuple[int, ...]]]:
    """As the checkpoint of such a config would name and shape them."""
    reader = architectures.of(config["architectures"][0])
    assert reader is not None
    found: dict[str, tuple[str, tuple[int, ...]]] = {}
    for tensor in reader.read(Config(config, "config.json")).tensors():
        for number in range(tensor.copies):
            found[tensor.name.replace(".*.", f".{number}.")] = ("BF16", tensor.shape)
    return found


def write(folder: Path, config: dict[str, Any], named: dict[str, tuple[str, tuple[int, ...]]], shards: int = 2) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    mapping = {}
    names = sorted(named)
    for number in range(shards):
        file = f"model-{number + 1:05d}-of-{shards:05d}.safetensors"
        own = {name: named[name] for name in names[number::shards]}
        (folder / file).write_bytes(_shard(own))
        mapping |= dict.fromkeys(own, file)
    index = {"metadata": {"total_size": sum(_size(*entry) for entry in named.values())}, "weight_map": mapping}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    return folder


def _shard(named: dict[str, tuple[str, tuple[int, ...]]]) -> bytes:
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    start = 0
    for name, (kind, shape) in named.items():
        header[name] = {"dtype": kind, "shape": list(shape), "data_offsets": [start, start + _size(kind, shape)]}
        start += _size(kind, shape)
    raw = json.dumps(header).encode()
    return struct.pack("<Q", len(raw)) + raw + bytes(start)


def _size(kind: str, shape: tuple[int, ...]) -> int:
    size = BYTES[kind]
    for part in shape:
        size *= part
    return size
