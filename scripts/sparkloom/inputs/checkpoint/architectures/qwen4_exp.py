"""Qwen3.8-Flash-Next: Qwen3.5's layers with block-sparse attention, low-rank hyper-connections and an n-gram table."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil

from sparkloom.inputs.checkpoint.architectures._common import Reader, attention, delta_net, ends, layer_types
from sparkloom.inputs.checkpoint.architectures._qwen_vision import tower
from sparkloom.inputs.checkpoint.architectures.qwen3_next import forward_of
from sparkloom.inputs.checkpoint.config import Config
from sparkloom.inputs.checkpoint.parts import Attention, Choice, Tensor, matrix, norm
from sparkloom.inputs.checkpoint.shape import Forward, Layer, Shape

AT = "model.language_model"


def read(config: Config) -> Shape:
    text, vision = config.text, config.section("vision_config")
    full = attention(text, norms="head", gate=True, choice=_choice(text))
    line, forward = delta_net(text), forward_of(text)
    looked_up = {int(number) for number in text.about("tables").items("ple_layer_ids")}  # counted from 1
    layers = []
    for number, word in enumerate(layer_types(text)):
        at, whole = f"{AT}.layers.{number}", word == "full_attention"
        more = [*_between(text, at), *(_indexer(text, at) if whole else ())]
        more += _table_reader(text, at) if number + 1 in looked_up else []
        layers.append(Layer(at, full if whole else line, forward, full.hidden, (), tuple(more)))
    drafts = text.about("mtp").count("mtp_num_hidden_layers")
    draft = [_draft(text, number, full, forward) for number in range(drafts)]
    return Shape(
        layers=tuple(layers),
        draft=tuple(draft),
        draft_more=tuple(_joint(full.hidden)) if drafts else (),
        vision=tuple(tower(vision)) if vision else (),
        tables=tuple(_tables(text)),
        other=tuple(_residual(text, f"{AT}.hyper_connection_mixer", combine=False)),
        embedding=f"{AT}.embed_tokens",
        last_norm="",
        unknown=() if vision else ("config.json has no vision_config: the tower is not counted",),
        **ends(config),
    )


def _draft(text: Config, number: int, full: Attention, forward: Forward) -> Layer:
    at = f"mtp.layers.{number}"
    more = (*_between(text, at), *_indexer(text, at))
    return Layer(at, full, forward, full.hidden, (), more)


def _joint(hidden: int) -> list[Tensor]:
    joined = [matrix(f"mtp.{name}", hidden, hidden, "draft") for name in ("fc_embedding", "fc_hidden")]
    names = ("mtp.pre_fc_norm_embedding", "mtp.pre_fc_norm_hidden", "mtp.norm")
    return [*joined, *(tensor for name in names for tensor in norm(name, hidden))]


def _between(text: Config, at: str) -> Iterator[Tensor]:
    for part in ("attn", "mlp"):
        yield from _residual(text, f"{at}.{part}_hyper_connection")


def _residual(text: Config, at: str, *, combine: bool = True) -> Iterator[Tensor]:
    facts = text.about("model")
    streams, rank = facts.number("hc_count"), facts.number("hc_lowrank")
    wide = streams * facts.number("hidden_size")
    yield from norm(f"{at}.hc_norm", wide)
    yield matrix(f"{at}.input_mix_weight_down", rank, wide, "other")
    yield matrix(f"{at}.input_mix_weight_up", wide, rank, "other")
    if combine:
        yield matrix(f"{at}.block_inject_weight", streams, wide, "other")


def _choice(text: Config) -> Choice:
    facts = text.about("sparse")
    block = facts.number("indexer_compress_ratio")
    heads, width = facts.number("indexer_n_heads"), facts.number("indexer_head_dim") * facts.number("indexer_kv_heads")
    return Choice(heads, width, facts.number("indexer_budget") // block, block, per_token=False)


def _indexer(text: Config, at: str) -> Iterator[Tensor]:
    facts, name = text.about("sparse"), f"{at}.self_attn.indexer"
    width = facts.number("indexer_head_dim")
    heads = facts.number("indexer_n_heads") + facts.number("indexer_kv_heads")
    yield matrix(f"{name}.index_qk_proj", heads * width, text.number("hidden_size"), "attention")
    for each in ("q_layernorm", "k_layernorm"):
        yield from norm(f"{name}.{each}", width)


def _table_reader(text: Config, at: str) -> Iterator[Tensor]:
    facts, hidden = text.about("tables"), text.number("hidden_size")
    wide, embed = hidden * text.number("hc_count"), facts.number("ple_embed_dim")
    yield matrix(f"{at}.ple.key_proj", wide, embed, "other")
    yield matrix(f"{at}.ple.value_proj", hidden, embed, "other")
    for each in ("norm_key", "norm_query", "norm_conv"):
        yield from norm(f"{at}.ple.{each}", wide)
    yield Tensor(f"{at}.ple.conv1d.weight", (wide, 1, facts.number("ple_conv_kernel_size")), "other", linear=False)


def _tables(text: Config) -> Iterator[Tensor]:
    """One table per layer that looks up; the sizes of its parts are primes a few tens above the base: left out here."""
    facts = text.about("tables")
    heads = (facts.number("ngram_size") - 1) * facts.number("heads_per_ngram")
    divisor = facts.maybe("make_ngram_vocab_size_divisible_by") or 1
    rows = ceil(heads * facts.number("ngram_vocab_size_base") / divisor) * divisor
    width = facts.number("ple_embed_dim") // heads
    for number in facts.items("ple_layer_ids"):
        at = f"{AT}.layers.{int(number) - 1}.ple.ple_embedding.ngram_embedding.weight"
        yield Tensor(at, (rows, width), "tables", linear=False)


READERS = (Reader(("Qwen4ExpForConditionalGeneration",), read, "transformers models/qwen4_exp"),)
