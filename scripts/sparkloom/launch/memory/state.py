"""What requests occupy: key/value cache per token, recurrent state per slot."""

from __future__ import annotations

import math

from sparkloom.inputs.profile import Indexer, Model, Parallel
from sparkloom.launch.memory.attention import indexers, kv_heads_per_rank

CONV_BYTES = 2  # convolution windows stay bf16
SLIDING_SHARE = 0.8  # SGLang's swa_full_tokens_ratio: sliding layers get a pool of this share of the tokens
# An indexer's keys, whatever the cache is in: fp8 with an fp32 scale per 128, or as the model computes.
INDEX_BYTES = {"fp8": 1 + 4 / 128, "bf16": 2.0}


def kv_bytes_per_token(model: Model, parallel: Parallel, element: float, *, pool: bool = True) -> float:
    """On one rank, over all attention layers of its pipeline stage. `pool`: as the cache's pool is sized."""
    sliding = model.layers.sliding * _sliding_bytes(model, parallel.tp, element)
    return (_growing(model, parallel.tp, element) + sliding * (SLIDING_SHARE if pool else 1.0)) / parallel.pp


def _growing(model: Model, tp: int, element: float) -> float:
    """What one more token adds in the layers that keep all of them, whole or compressed."""
    layers, each = model.layers, kv_bytes_per_layer(model, tp, element)
    full = layers.cached("1") * each
    if layers.sparse or layers.compressed:
        full += sum(layers.cached(ratio) / int(ratio) * each for ratio in layers.compressed)
        full += _index_bytes(model)
    return full


def _index_bytes(model: Model) -> float:
    """Keys of the indexers per token, a copy on every rank."""
    facts, caches = model.attention.indexer, model.layers.caches
    if facts and caches and facts.ratio is None:  # a key for each entry of the layers that keep entries
        return sum(count / int(ratio) for ratio, count in caches.items()) * _key_bytes(facts)
    return indexers(model) * _key_bytes(facts) / (facts.ratio or 1) if facts else 0.0


def _key_bytes(facts: Indexer) -> float:
    return facts.head_dim * INDEX_BYTES[facts.keys] / (facts.pool or 1)


def _sliding_bytes(model: Model, tp: int, element: float) -> float:
    facts = model.attention
    if model.layers.compressed:
        return kv_bytes_per_layer(model, tp, element)
    heads = kv_heads_per_rank(facts.sliding_kv_heads or facts.kv_heads, tp)
    head = facts.sliding_head_dim or facts.head_dim
    value = facts.sliding_v_head_dim or (None if facts.sliding_head_dim else facts.v_head_dim)
    return (head + (value or head)) * heads * element


def kv_bytes_per_layer(model: Model, tp: int, element: float) -> float:
    """One token, or one entry that stands for several, in one layer of full attention."""
    facts = model.attention
    if facts.kv_rank:
        return _latent_bytes(model, facts.kv_rank, element)  # one compressed vector, a copy on every rank
    return (facts.head_dim + (facts.v_head_dim or facts.head_dim)) * kv_heads_per_rank(facts.kv_heads, tp) * element


def _latent_bytes(model: Model, width: int, element: float) -> float:
    """In fp8 what carries positions stays bf16 where tokens are chosen or compressed, and scales lie beside."""
    rope = model.attention.rope_dim or 0
    if element != 1.0 or not (model.layers.sparse or model.layers.compressed):
        return width * element
    inner = width - rope
    scales = math.ceil(inner / 64 / 8) * 8 if model.layers.compressed else inner / 128 * 4
    return inner + 2 * rope + scales


def kv_of_request(model: Model, parallel: Parallel, element: float, tokens: float, ahead: int = 0) -> float:
    """Bytes that one request of `tokens` tokens keeps on a rank; `ahead`: tokens prefilled at once beyond a window."""
    seen, layers = model.attention.window, model.layers
    whole = kv_bytes_per_token(model, parallel, element, pool=False)
    if not seen or not (layers.sliding or layers.compressed):
        return whole * tokens
    full = _growing(model, parallel.tp, element) / parallel.pp
    near = whole - full + _window_of_compressed(model, parallel, element)
    return full * tokens + near * min(tokens, seen + ahead)


def _window_of_compressed(model: Model, parallel: Parallel, element: float) -> float:
    """Per token of the window that layers over a compressed cache keep whole."""
    return sum(model.layers.compressed.values()) * kv_bytes_per_layer(model, parallel.tp, element) / parallel.pp


def kv_read_per_request(model: Model, parallel: Parallel, element: float, tokens: float) -> float:
    """Bytes one request of `tokens` tokens makes a rank read per step: sliding layers see their window only, sparse
    ones what their indexer chooses, which reads the keys of all."""
    facts, layers = model.attention.indexer, model.layers
    kept = kv_of_request(model, parallel, element, tokens)
    if facts is None:
        return kept
    ratio = facts.ratio or 1
    choosing = layers.sparse if facts.ratio is None else layers.compressed[str(facts.ratio)]
    passed = max(0.0, tokens / ratio - facts.top_k)
    return kept - choosing * passed * kv_bytes_per_layer(model, parallel.tp, element) / parallel.pp


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
