"""What requests occupy: key/value cache per token, recurrent state per slot."""

from __future__ import annotations

from sparkloom.inputs.profile import Model, Parallel
from sparkloom.launch.memory.weights import kv_heads_per_rank

CONV_BYTES = 2  # convolution windows stay bf16
SLIDING_SHARE = 0.8  # SGLang's swa_full_tokens_ratio: sliding layers get a pool of this share of the tokens


def kv_bytes_per_token(model: Model, parallel: Parallel, element: float, *, pool: bool = True) -> float:
    """On one rank, over all attention layers of its pipeline stage. `pool`: as the cache's pool is sized."""
    layers, tp = model.layers, parallel.tp
    full = layers.attention * kv_bytes_per_layer(model, tp, element)
    heads = kv_heads_per_rank(model.attention.sliding_kv_heads or model.attention.kv_heads, tp)
    head = model.attention.sliding_head_dim or model.attention.head_dim
    sliding = layers.sliding * 2 * heads * head * element
    return (full + sliding * (SLIDING_SHARE if pool else 1.0)) / parallel.pp


def kv_bytes_per_layer(model: Model, tp: int, element: float) -> float:
    facts = model.attention
    if facts.kv_rank:
        return facts.kv_rank * element  # one compressed vector, a copy on every rank
    return 2 * kv_heads_per_rank(facts.kv_heads, tp) * facts.head_dim * element


def kv_of_request(model: Model, parallel: Parallel, element: float, tokens: float, ahead: int = 0) -> float:
    """Bytes that one request of `tokens` tokens keeps on a rank; `ahead`: tokens prefilled at once beyond a window."""
    seen = model.attention.window
    whole = kv_bytes_per_token(model, parallel, element, pool=False)
    if not model.layers.sliding or not seen:
        return whole * tokens
    full = model.layers.attention * kv_bytes_per_layer(model, parallel.tp, element) / parallel.pp
    return full * tokens + (whole - full) * min(tokens, seen + ahead)


def kv_read_per_request(model: Model, parallel: Parallel, element: float, tokens: float) -> float:
    """Bytes one request of `tokens` tokens makes a rank read per step: sliding layers see their window only."""
    return kv_of_request(model, parallel, element, tokens)


def slot_bytes(model: Model, parallel: Parallel, element: float) -> float:
    """Recurrent state of one slot on one rank: the states in `element` bytes, convolution windows in bf16."""
    tp, size = parallel.tp, 0.0
    if model.mamba:
        facts = model.mamba
        groups = facts.groups + ((tp - facts.groups) if facts.groups % tp else 0)
        channels = facts.heads * facts.head_dim + 2 * groups * facts.state
        states = facts.heads * facts.head_dim * facts.state
        size += model.layers.mamba * (states * element + channels * (facts.conv - 1) * CONV_BYTES) / tp
    if model.linear:
        line = model.linear
        channels = (2 * line.k_heads + line.v_heads) * line.head_dim
        states = line.v_heads * line.head_dim * line.head_dim
        size += model.layers.linear * (states * element + channels * (line.conv - 1) * CONV_BYTES) / tp
    return size / parallel.pp
