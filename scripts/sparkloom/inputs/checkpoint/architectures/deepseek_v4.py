"""DeepSeek V4: compressed attention, hyper-connections between layers, four-bit experts, one draft layer or DSpark.

V4.1: some layers store compressed entries that later ones read; n-gram ("Engram") tables are looked up. DSpark: layers
behind a model that draft a block at once, fed by what some of its last layers put out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from sparkloom.inputs.checkpoint import tensors
from sparkloom.inputs.checkpoint.architectures import _common as common
from sparkloom.inputs.checkpoint.architectures._common import reads
from sparkloom.inputs.checkpoint.config import Config
from sparkloom.inputs.checkpoint.parts import Compressed, Experts
from sparkloom.inputs.checkpoint.shape import Layer, Shape
from sparkloom.inputs.checkpoint.tensors import Tensor, vector

NORMS = ("attn_norm", "ffn_norm")
ENDS = {"embedding": "embed", "head": "head", "last_norm": "norm"}
BLOCK = 32  # of a V4.1 table's row: an exponent byte for each


@reads("DeepseekV4ForCausalLM", source="transformers models/deepseek_v4")
def v4(config: Config) -> Shape:
    text, count = config.text, common.number_of_layers(config.text)
    drafts = _drafts(text, count)
    ratios = text.about("sparse").per_layer(count + drafts, "compress_ratios", numbers=True)
    every = [_layer(text, n, ratios[n], f"layers.{n}" if n < count else f"mtp.{n - count}") for n in range(len(ratios))]
    if _has_dspark(text):
        joints = [*_dspark(text, drafts), *tensors.extras(text, "v4_mixed_head", every[-1].at)]
    else:
        names = ("v4_joint", "v4_mixed_head")
        joints = [t for layer in every[count:] for name in names for t in tensors.extras(text, name, layer.at)]
    ends: dict[str, Any] = {**ENDS, "other": tensors.extras(text, "v4_mixed_head")}
    return common.model(config, "", every[:count], draft=tuple(every[count:]), draft_more=tuple(joints), **ends)


def _drafts(text: Config, count: int) -> int:
    """Layers behind the model's own. With DSpark `num_nextn_predict_layers` still says 1, as before it: there are as
    many as have a ratio."""
    if not _has_dspark(text):
        return text.about("mtp").count("num_nextn_predict_layers")
    return max(0, len(text.about("sparse").items("compress_ratios")) - count)


def _layer(text: Config, number: int, ratio: int, at: str) -> Layer:
    hashed = number < text.about("experts").count("num_hash_layers") and at.startswith("layers.")
    forward = _experts(text)
    choice = _choice(text, at, forward) if hashed else _gate(at, forward)
    more = (*tensors.extras(text, "v4_streams", at), choice)
    return Layer(at, _compressed(text, ratio, chooses=ratio == 4), forward, NORMS, more)


def _experts(text: Config) -> Experts:
    return common.experts(text, place="ffn", **common.W_NAMES)


def _gate(at: str, forward: Experts) -> Tensor:
    return vector(f"{at}.ffn.gate.bias", forward.routed, "router", "f32")


def _choice(text: Config, at: str, forward: Experts) -> Tensor:
    """The first layers look their experts up by the token's number."""
    shape = (text.number("vocab_size"), forward.active)
    return Tensor(f"{at}.ffn.gate.tid2eid", shape, "router", linear=False, always="i64")


def _compressed(text: Config, ratio: int, *, chooses: bool) -> Compressed:
    plain, sparse = common.part(Compressed, text, ratio=ratio), text.about("sparse")
    if not chooses:
        return plain
    return replace(
        plain,
        index_heads=sparse.number("index_n_heads"),
        index_dim=sparse.number("index_head_dim"),
        index_top=sparse.number("index_topk"),
    )


@reads("DeepseekV41ForCausalLM", source="vLLM models/deepseek_v41")
def v41(config: Config) -> Shape:
    text, count = config.text, common.number_of_layers(config.text)
    ratios = text.about("sparse").per_layer(count, "compress_ratios", numbers=True)
    forward = _experts(text)
    layers = [_v41_layer(text, f"layers.{n}", _v41_mixer(text, n, ratios[n]), forward) for n in range(count)]
    drafts = text.about("mtp").count("num_nextn_predict_layers")
    drafted = replace(forward, routed=text.about("mtp").maybe("dspark_n_routed_experts") or forward.routed)
    near = _compressed(text, 0, chooses=False)
    looked_up = [f"layers.{number}.engram" for number in text.about("tables").items("engram_layer_ids")]
    return common.model(
        config,
        "",
        layers,
        **ENDS,
        draft=tuple(_v41_layer(text, f"mtp.{n}", near, drafted) for n in range(drafts)),
        draft_more=_dspark(text, drafts, v41=True) if drafts else (),
        vision=tensors.tower(config, "deepseek_v41", text_hidden=forward.hidden),
        tables=tuple(_tables(text, looked_up)),
        other=tuple(tensor for at in looked_up for tensor in tensors.extras(text, "v41_table_reader", at)),
    )


def _v41_mixer(text: Config, number: int, ratio: int) -> Compressed:
    sparse = text.about("sparse")
    part = _compressed(text, ratio, chooses=number in sparse.items("index_source_layer_ids"))
    return replace(part, stores=number in sparse.items("kv_source_layer_ids"), positions=False)


def _v41_layer(text: Config, at: str, mixer: Compressed, forward: Experts) -> Layer:
    more = (*tensors.extras(text, "v4_streams", at), _gate(at, forward))
    return Layer(at, mixer, forward, NORMS, more)


def _tables(text: Config, looked_up: list[str]) -> Iterator[Tensor]:
    facts = text.about("tables")
    for at, rows in zip(looked_up, facts.items("engram_num_embeddings"), strict=False):
        shape = (int(rows), facts.number("engram_head_dim"))
        yield Tensor(f"{at}.embed.weight", shape, "tables", linear=False, always="f8", scaled=BLOCK)


def _has_dspark(text: Config) -> bool:
    return bool(text.about("mtp").items("dspark_target_layer_ids"))


def _dspark(text: Config, stages: int, *, v41: bool = False) -> tuple[Tensor, ...]:
    """What stands around the layers, at the first and at the last."""
    return tensors.extras(text, "dspark_in", "mtp.0") + tensors.extras(text, "dspark_out", f"mtp.{stages - 1}", v41=v41)
