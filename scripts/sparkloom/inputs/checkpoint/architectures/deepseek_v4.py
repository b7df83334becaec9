"""DeepSeek V4: compressed attention, hyper-connections between layers, four-bit experts, one draft layer or DSpark.

V4.1: some layers store compressed entries that later ones read; n-gram ("Engram") tables are looked up. DSpark: layers
behind a model that draft a block at once, fed by what some of its last layers put out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from sparkloom.inputs.checkpoint import towers
from sparkloom.inputs.checkpoint.architectures._common import (
    W_NAMES,
    Reader,
    experts,
    model,
    number_of_layers,
    part,
)  # fmt: skip
from sparkloom.inputs.checkpoint.config import Config
from sparkloom.inputs.checkpoint.parts import Compressed, Experts
from sparkloom.inputs.checkpoint.shape import Layer, Shape
from sparkloom.inputs.checkpoint.tensors import Tensor, matrix, norm, vector

NORMS = ("attn_norm", "ffn_norm")
ENDS = {"embedding": "embed", "head": "head", "last_norm": "norm"}
BLOCK = 32  # of a V4.1 table's row: an exponent byte for each


def v4(config: Config) -> Shape:
    text, count = config.text, number_of_layers(config.text)
    drafts = _drafts(text, count)
    ratios = text.about("sparse").per_layer(count + drafts, "compress_ratios")
    if not ratios:
        raise text.missing("compress_ratios")
    every = [_layer(text, n, ratios[n], f"layers.{n}" if n < count else f"mtp.{n - count}") for n in range(len(ratios))]
    hidden, streams = text.number("hidden_size"), text.number("hc_mult")
    joints = [tensor for layer in every[count:] for tensor in _joint(layer.at, hidden, streams)]
    if _has_dspark(text):
        beside = _dspark(text, drafts, ("markov_w1", "markov_w2"))
        joints = [*beside, *_mixed_head(f"{every[-1].at}.", hidden, streams)]
    ends: dict[str, Any] = {**ENDS, "other": tuple(_mixed_head("", hidden, streams))}
    return model(config, "", every[:count], draft=tuple(every[count:]), draft_more=tuple(joints), **ends)


def _drafts(text: Config, count: int) -> int:
    """Layers behind the model's own. With DSpark `num_nextn_predict_layers` still says 1, as before it: there are as
    many as have a ratio."""
    if not _has_dspark(text):
        return text.about("mtp").count("num_nextn_predict_layers")
    return max(0, len(text.about("sparse").items("compress_ratios")) - count)


def _joint(at: str, hidden: int, streams: int) -> Iterator[Tensor]:
    yield matrix(f"{at}.e_proj", hidden, hidden, "draft")
    yield matrix(f"{at}.h_proj", hidden, hidden, "draft")
    for name in ("enorm", "hnorm", "norm"):
        yield from norm(f"{at}.{name}", hidden)
    yield from _mixed_head(f"{at}.", hidden, streams)


def _layer(text: Config, number: int, ratio: int, at: str) -> Layer:
    mixer = _compressed(text, ratio, chooses=ratio == 4)
    hashed = number < text.about("experts").count("num_hash_layers") and at.startswith("layers.")
    forward = _experts(text)
    more = [*streams(at, mixer.hidden, text.about("model").number("hc_mult"))]
    more.append(
        _choice(text, at, forward) if hashed else vector(f"{at}.ffn.gate.bias", forward.routed, "router", "f32")
    )
    return Layer(at, mixer, forward, mixer.hidden, NORMS, tuple(more))


def _experts(text: Config) -> Experts:
    return experts(text, place="ffn", names=W_NAMES)


def _choice(text: Config, at: str, forward: Experts) -> Tensor:
    """The first layers look their experts up by the token's number."""
    shape = (text.number("vocab_size"), forward.active)
    return Tensor(f"{at}.ffn.gate.tid2eid", shape, "router", linear=False, always="i64")


def _compressed(text: Config, ratio: int, *, chooses: bool) -> Compressed:
    plain, sparse = part(Compressed, text, ratio=ratio), text.about("sparse")
    if not chooses:
        return plain
    return replace(
        plain,
        index_heads=sparse.number("index_n_heads"),
        index_dim=sparse.number("index_head_dim"),
        index_top=sparse.number("index_topk"),
    )


def streams(at: str, hidden: int, count: int, kept: str = "f32") -> Iterator[Tensor]:
    """Hyper-connections: what mixes a layer's parallel streams, before attention and before the feed-forward. `kept`:
    the matrix' own type; empty = the model's."""
    rows = (2 + count) * count
    for half in ("attn", "ffn"):
        yield Tensor(f"{at}.hc_{half}_fn", (rows, count * hidden), "other", linear=False, always=kept)
        yield vector(f"{at}.hc_{half}_base", rows, "other", "f32")
        yield vector(f"{at}.hc_{half}_scale", 3, "other", "f32")


def _mixed_head(at: str, hidden: int, count: int) -> Iterator[Tensor]:
    yield Tensor(f"{at}hc_head_fn", (count, count * hidden), "other", linear=False, always="f32")
    yield vector(f"{at}hc_head_base", count, "other", "f32")
    yield vector(f"{at}hc_head_scale", 1, "other", "f32")


def v41(config: Config) -> Shape:
    text, count = config.text, number_of_layers(config.text)
    ratios = text.about("sparse").per_layer(count, "compress_ratios")
    forward = _experts(text)
    layers = [_v41_layer(text, f"layers.{n}", _v41_mixer(text, n, ratios[n]), forward) for n in range(count)]
    drafts = text.about("mtp").count("num_nextn_predict_layers")
    drafted = replace(forward, routed=text.about("mtp").maybe("dspark_n_routed_experts") or forward.routed)
    near = _compressed(text, 0, chooses=False)
    return model(
        config, "", layers, **ENDS,
        draft=tuple(_v41_layer(text, f"mtp.{n}", near, drafted) for n in range(drafts)),
        draft_more=tuple(_dspark(text, drafts, ("embed", "head"))) if drafts else (),
        vision=towers.of(config, "deepseek_v41", text_hidden=forward.hidden),
        tables=tuple(_tables(text)),
        other=tuple(_table_readers(text)),
    )  # fmt: skip


def _v41_mixer(text: Config, number: int, ratio: int) -> Compressed:
    sparse = text.about("sparse")
    stores = number in sparse.items("kv_source_layer_ids")
    part = _compressed(text, ratio, chooses=number in sparse.items("index_source_layer_ids"))
    return replace(part, stores=stores, index_keys="latent" if stores else "none")


def _v41_layer(text: Config, at: str, mixer: Compressed, forward: Experts) -> Layer:
    mixing = streams(at, mixer.hidden, text.about("model").number("hc_mult"))
    more = (*mixing, vector(f"{at}.ffn.gate.bias", forward.routed, "router", "f32"))
    return Layer(at, mixer, forward, mixer.hidden, NORMS, more)


def _table_readers(text: Config) -> Iterator[Tensor]:
    facts, hidden = text.about("tables"), text.number("hidden_size")
    mult = text.number("hc_mult")
    columns = (facts.number("engram_max_ngram_size") - 1) * facts.number("engram_n_heads")
    for number in facts.items("engram_layer_ids"):
        at = f"layers.{number}.engram"
        yield matrix(f"{at}.wkv", hidden * (mult + 1), columns * facts.number("engram_head_dim"), "other")
        for name in ("q_weight", "k_weight"):
            yield Tensor(f"{at}.{name}", (mult, hidden), "other", linear=False)


def _tables(text: Config) -> Iterator[Tensor]:
    facts = text.about("tables")
    numbers, rows = facts.items("engram_layer_ids"), facts.items("engram_num_embeddings")
    for number, count in zip(numbers, rows, strict=False):
        shape = (int(count), facts.number("engram_head_dim"))
        at = f"layers.{number}.engram.embed.weight"
        yield Tensor(at, shape, "tables", linear=False, always="f8", scaled=BLOCK)


def _has_dspark(text: Config) -> bool:
    return bool(text.about("mtp").items("dspark_target_layer_ids"))


def _dspark(text: Config, stages: int, names: tuple[str, str]) -> Iterator[Tensor]:
    """What stands beside the layers: the way in at the first, the way out and a small chain of tokens at the last.
    `names`: the two tables of that chain."""
    facts, hidden, vocab = text.about("mtp"), text.number("hidden_size"), text.number("vocab_size")
    rank, last = facts.number("dspark_markov_rank"), stages - 1
    yield matrix("mtp.0.main_proj", hidden, hidden * len(facts.items("dspark_target_layer_ids")), "draft")
    yield from norm("mtp.0.main_norm", hidden)
    yield from norm(f"mtp.{last}.norm", hidden)
    for name in names:
        yield Tensor(f"mtp.{last}.markov_head.{name}.weight", (vocab, rank), "draft", linear=False)
    yield Tensor(f"mtp.{last}.confidence_head.proj.weight", (1, hidden + rank), "draft", linear=False)


READERS = (
    Reader(("DeepseekV4ForCausalLM",), v4, "transformers models/deepseek_v4"),
    Reader(("DeepseekV41ForCausalLM",), v41, "vLLM models/deepseek_v41"),
)
