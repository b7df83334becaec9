"""The layers of a model in a profile's words: how many of each kind, and the widths of their attention."""

from __future__ import annotations

from collections import Counter
from typing import Any

from sparkloom.inputs.checkpoint.parts import Attention, Compressed, Latent
from sparkloom.inputs.checkpoint.shape import Layer, Shape


def of(shape: Shape) -> dict[str, Any]:
    """`layers:` and `attention:`."""
    return {"layers": layers(shape), "attention": _attention(shape)}


def given(**facts: Any) -> dict[str, Any]:
    """Those that say something: a profile leaves out what is nought."""
    return {name: fact for name, fact in facts.items() if fact}


def layers(shape: Shape) -> dict[str, Any]:
    counts = Counter(map(_kind, shape.layers))
    counts.update(layer.forward.kind for layer in shape.layers if layer.forward)
    order = ("attention", "sparse", "sliding", "linear", "mamba", "moe", "dense")
    reading = [layer.mixer for layer in shape.layers if isinstance(layer.mixer, Compressed) and layer.mixer.ratio]
    compressed = Counter(str(part.ratio) for part in reading if part.ratio > 1)
    storing = Counter(str(part.ratio) for part in reading if part.stores)
    caches = dict(sorted(storing.items())) if storing.total() < len(reading) else {}
    return given(**{name: counts[name] for name in order}, compressed=dict(compressed), caches=caches)


def _kind(layer: Layer) -> str:
    """As a profile has it: attention, sparse, sliding, compressed, linear, mamba, or nothing."""
    part = layer.mixer
    if isinstance(part, Compressed):
        return "compressed" if part.ratio > 1 else "sliding" if part.ratio == 0 else "sparse"
    if isinstance(part, Latent):
        return "sparse" if part.chosen else "attention"
    if isinstance(part, Attention):
        return "sparse" if part.choice else "sliding" if part.window else "attention"
    return part.kind if part else ""


def _attention(shape: Shape) -> dict[str, Any]:
    mixers = [layer.mixer for layer in shape.layers]
    if compressed := [part for part in mixers if isinstance(part, Compressed)]:
        return _over_compressed(compressed)
    if latent := [part for part in mixers if isinstance(part, Latent)]:
        return _latent(latent)
    return _plain([part for part in mixers if isinstance(part, Attention)])


def _latent(parts: list[Latent]) -> dict[str, Any]:
    part = parts[0]
    data: dict[str, Any] = {
        "q_heads": part.q_heads,
        "kv_heads": part.q_heads,
        "head_dim": part.nope + part.rope,
        "v_head_dim": part.v_dim,
        "kv_rank": part.kv_rank + part.rope,
        **given(q_rank=part.q_rank, rope_dim=part.rope),
    }
    if own := [each.indexer for each in parts if each.indexer]:
        first, fewer = own[0], len(own) < len(parts)
        data["indexer"] = {"heads": first.heads, "head_dim": first.head_dim, "top_k": first.top}
        data["indexer"] |= given(pool=first.block > 1 and first.block, layers=fewer and len(own))
    return data


def _over_compressed(parts: list[Compressed]) -> dict[str, Any]:
    part = parts[0]
    data: dict[str, Any] = {
        "q_heads": part.q_heads,
        "kv_heads": 1,
        "head_dim": part.head_dim,
        "window": part.window,
        "kv_rank": part.head_dim,
        "q_rank": part.q_rank,
        "rope_dim": part.rope,
        "o_rank": part.o_rank,
        "o_groups": part.o_groups,
    }
    if own := [each for each in parts if each.index_heads]:
        first, ratios = own[0], {each.ratio for each in own}
        data["indexer"] = {"heads": first.index_heads, "head_dim": first.index_dim, "top_k": first.index_top}
        alone = len(ratios) == 1
        alike = [each for each in parts if (each.ratio in ratios if alone else each.ratio)]
        ratio = alone and first.ratio > 1 and first.ratio
        data["indexer"] |= given(layers=len(own) < len(alike) and len(own), ratio=ratio)
    return data


def _plain(parts: list[Attention]) -> dict[str, Any]:
    """The full layers' widths first; the sliding ones' where they differ."""
    if not parts:
        return {"q_heads": 1, "kv_heads": 1, "head_dim": 1}
    full = [part for part in parts if not part.window] or parts
    first = full[0]
    heads = Counter(part.kv_heads for part in full).most_common(1)[0][0]
    data: dict[str, Any] = {"q_heads": first.q_heads, "kv_heads": heads, "head_dim": first.head_dim}
    data |= given(v_head_dim=first.v_dim != first.head_dim and first.v_dim)
    near = next((part for part in parts if part.window), None)
    if near:
        data["window"] = near.window
        pairs = (
            ("sliding_q_heads", near.q_heads, first.q_heads), ("sliding_kv_heads", near.kv_heads, heads),
            ("sliding_head_dim", near.head_dim, first.head_dim), ("sliding_v_head_dim", near.v_dim, first.v_dim),
        )  # fmt: skip
        data |= {name: own for name, own, others in pairs if own and own != others}
    choice = next((part.choice for part in parts if part.choice), None)
    if choice:
        data["indexer"] = {"heads": choice.heads, "head_dim": choice.head_dim, "top_k": choice.top * choice.block}
        data["indexer"] |= {"keys": "bf16"} | ({} if choice.per_token else {"pool": choice.block})
    return data | given(output_gate=first.gate)
