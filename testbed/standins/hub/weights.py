"""Checkpoints that are real in form: valid safetensors with an index, a config with the model's facts, no meaning."""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sparkloom.inputs.profile import Model
from testbed.standins.hub import smollm, tiny

CHUNK = 1 << 20
WIDTH = {"BF16": 2, "U8": 1}
MIB = 1 << 20


@dataclass(frozen=True)
class Shape:
    """How much is made. `sparse` leaves holes: a shard of any size costs a few blocks of disk."""

    shards: int = 4
    shard_bytes: int = 4 * MIB
    seed: int = 1
    sparse: bool = False


@dataclass(frozen=True)
class Tensor:
    name: str
    dtype: str
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        count = WIDTH[self.dtype]
        for side in self.shape:
            count *= side
        return count


def tensors(model: Model, layer: int, size: int) -> list[Tensor]:
    """One layer's tensors: a norm as wide as the model, and packed weights that fill the size up."""
    norm = Tensor(f"model.layers.{layer}.norm.weight", "BF16", (model.hidden,))
    rows = max(1, (size - norm.size) // model.hidden)
    return [norm, Tensor(f"model.layers.{layer}.mixer.weight", "U8", (rows, model.hidden))]


def header(parts: list[Tensor]) -> bytes:
    """The safetensors header: its length, then JSON padded to eight bytes."""
    table: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    offset = 0
    for part in parts:
        table[part.name] = {"dtype": part.dtype, "shape": part.shape, "data_offsets": [offset, offset + part.size]}
        offset += part.size
    text = json.dumps(table, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text


def _filled(size: int, source: random.Random) -> Iterator[bytes]:
    while size:
        piece = min(size, CHUNK)
        yield source.randbytes(piece)
        size -= piece


def write_shard(path: Path, parts: list[Tensor], shape: Shape, number: int) -> None:
    source = random.Random(f"{shape.seed}/{number}")
    with path.open("wb") as file:
        file.write(header(parts))
        for part in parts:
            end = file.tell() + part.size
            for piece in _filled(min(part.size, 4096) if shape.sparse else part.size, source):
                file.write(piece)
            file.truncate(end)
            file.seek(end)


def write(folder: Path, model: Model, shape: Shape) -> None:
    """A whole checkpoint in a folder."""
    if smollm.known(model.id):
        return smollm.write(folder, model.id, model.file)
    if tiny.known(model.id):
        return tiny.write(folder, model.id, shape.seed)
    folder.mkdir(parents=True, exist_ok=True)
    mapping: dict[str, str] = {}
    for number in range(shape.shards):
        name = f"model-{number + 1:05d}-of-{shape.shards:05d}.safetensors"
        parts = tensors(model, number, shape.shard_bytes)
        write_shard(folder / name, parts, shape, number)
        mapping |= {part.name: name for part in parts}
    total = sum(part.size for number in range(shape.shards) for part in tensors(model, number, shape.shard_bytes))
    texts = {
        "config.json": config(model),
        "generation_config.json": {"do_sample": True, "eos_token_id": 2},
        "model.safetensors.index.json": {"metadata": {"total_size": total}, "weight_map": mapping},
        "tokenizer.json": {"version": "1.0", "added_tokens": [], "model": {"type": "BPE", "vocab": {}, "merges": []}},
        "tokenizer_config.json": {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": model.context},
    }
    for name, data in texts.items():
        (folder / name).write_text(json.dumps(data, indent=2) + "\n")
    (folder / "README.md").write_text(
        f"# {model.id}\n\nGenerated (seed {shape.seed}): this checkpoint has no meaning.\n"
    )
    if model.file:
        (folder / model.file).parent.mkdir(parents=True, exist_ok=True)
        write_shard(folder / model.file, tensors(model, 0, shape.shard_bytes), shape, shape.shards)


def config(model: Model) -> dict[str, Any]:
    """config.json with the facts of the profile, under the names that transformers uses."""
    layers, attention, experts = model.layers, model.attention, model.experts
    config: dict[str, Any] = {
        "architectures": [model.architecture],
        "hidden_size": model.hidden,
        "vocab_size": model.vocab,
        "max_position_embeddings": model.context,
        "num_hidden_layers": layers.softmax + layers.linear + layers.mamba + layers.moe + layers.dense,
        "num_attention_heads": attention.q_heads,
        "num_key_value_heads": attention.kv_heads,
        "head_dim": attention.head_dim,
        "tie_word_embeddings": model.tied_embeddings,
        "torch_dtype": "bfloat16",
    }
    if experts:
        config |= {
            "n_routed_experts": experts.routed,
            "num_experts_per_tok": experts.active,
            "moe_intermediate_size": experts.inter,
        }
    if model.mamba:
        mamba = model.mamba
        config |= {"mamba_num_heads": mamba.heads, "mamba_head_dim": mamba.head_dim, "ssm_state_size": mamba.state}
    return config
