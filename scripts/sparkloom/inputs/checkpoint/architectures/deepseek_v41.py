"""DeepSeek V4.1: some layers store compressed entries that later ones read; n-gram ("Engram") tables are looked up."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sparkloom.inputs.checkpoint.architectures import _dspark as dspark
from sparkloom.inputs.checkpoint.architectures._common import Reader, ends
from sparkloom.inputs.checkpoint.architectures.deepseek_v4 import NORMS, compressed, fed, streams
from sparkloom.inputs.checkpoint.compressed import Compressed
from sparkloom.inputs.checkpoint.config import Config
from sparkloom.inputs.checkpoint.parts import Experts, Tensor, biased, matrix, norm, vector
from sparkloom.inputs.checkpoint.shape import Layer, Shape

BLOCK = 32  # of a table's row: an exponent byte for each


def read(config: Config) -> Shape:
    text, vision = config.text, config.section("vision_config")
    count = text.about("layers").number("num_hidden_layers")
    ratios = text.about("sparse").per_layer(count, "compress_ratios")
    forward = fed(text)
    layers = tuple(_layer(text, f"layers.{n}", _mixer(text, n, ratios[n]), forward) for n in range(count))
    drafts = text.about("mtp").count("num_nextn_predict_layers")
    drafted = replace(forward, routed=text.about("mtp").maybe("dspark_n_routed_experts") or forward.routed)
    near = compressed(text, 0, chooses=False)
    return Shape(
        layers=layers,
        draft=tuple(_layer(text, f"mtp.{n}", near, drafted) for n in range(drafts)),
        draft_more=tuple(dspark.joint(text, drafts, ("embed", "head"))) if drafts else (),
        vision=tuple(_tower(vision, forward.hidden)) if vision else (),
        tables=tuple(_tables(text)),
        other=tuple(_readers(text)),
        embedding="embed",
        head="head",
        last_norm="norm",
        **ends(config),
    )


def _mixer(text: Config, number: int, ratio: int) -> Compressed:
    sparse = text.about("sparse")
    stores = number in sparse.items("kv_source_layer_ids")
    part = compressed(text, ratio, chooses=number in sparse.items("index_source_layer_ids"))
    return replace(part, stores=stores, index_keys="latent" if stores else "none")


def _layer(text: Config, at: str, mixer: Compressed, forward: Experts) -> Layer:
    mixing = streams(at, mixer.hidden, text.about("model").number("hc_mult"))
    more = (*mixing, vector(f"{at}.ffn.gate.bias", forward.routed, "router", "f32"))
    return Layer(at, mixer, forward, mixer.hidden, NORMS, more)


def _readers(text: Config) -> Iterator[Tensor]:
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


def _tower(vision: Config, text_hidden: int) -> Iterator[Tensor]:
    facts = vision.about("vision")
    hidden, inter = facts.number("hidden_size"), facts.number("intermediate_size")
    patch, merged = facts.number("patch_size"), facts.number("downsample_ratio") ** 2
    yield from biased("vision.patch_embed.proj", hidden, 3 * patch * patch, "vision")
    for number in range(facts.number("num_hidden_layers")):
        block = f"vision.blocks.{number}"
        yield from biased(f"{block}.attn.wqkv", 3 * hidden, hidden, "vision")
        yield from biased(f"{block}.attn.wo", hidden, hidden, "vision")
        for name, rows, columns in (("w1", inter, hidden), ("w3", inter, hidden), ("w2", hidden, inter)):
            yield matrix(f"{block}.mlp.{name}", rows, columns, "vision")
        yield from norm(f"{block}.norm1", hidden)
        yield from norm(f"{block}.norm2", hidden)
    yield from norm("vision.norm", hidden)
    yield from biased("aligner.w1", text_hidden, hidden * merged, "vision")
    yield from biased("aligner.w2", text_hidden, text_hidden, "vision")
    for name in ("image_start", "image_end", "image_newline"):
        yield vector(name, text_hidden, "vision")


READERS = (Reader(("DeepseekV41ForCausalLM",), read, "vLLM models/deepseek_v41"),)
