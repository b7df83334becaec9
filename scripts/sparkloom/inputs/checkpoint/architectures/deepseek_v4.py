"""DeepSeek V4: compressed attention, hyper-connections between layers, four-bit experts, one draft layer or DSpark."""

from __future__ import annotations

from collections.abc import Iterator

from sparkloom.inputs.checkpoint.architectures import _dspark as dspark
from sparkloom.inputs.checkpoint.architectures._common import Reader, ends, experts
from sparkloom.inputs.checkpoint.compressed import Compressed
from sparkloom.inputs.checkpoint.config import Config
from sparkloom.inputs.checkpoint.parts import Experts, Tensor, matrix, norm, vector
from sparkloom.inputs.checkpoint.shape import Layer, Shape

NORMS = ("attn_norm", "ffn_norm")


def read(config: Config) -> Shape:
    text = config.text
    count = text.about("layers").number("num_hidden_layers")
    drafts = _drafts(text, count)
    ratios = text.about("sparse").per_layer(count + drafts, "compress_ratios")
    if not ratios:
        raise text.missing("compress_ratios")
    every = [_layer(text, n, ratios[n], f"layers.{n}" if n < count else f"mtp.{n - count}") for n in range(len(ratios))]
    hidden, streams = text.number("hidden_size"), text.number("hc_mult")
    joints = [tensor for layer in every[count:] for tensor in _joint(layer.at, hidden, streams)]
    if dspark.drafts(text):
        beside = dspark.joint(text, drafts, ("markov_w1", "markov_w2"))
        joints = [*beside, *mixed_head(f"{every[-1].at}.", hidden, streams)]
    return Shape(
        layers=tuple(every[:count]),
        draft=tuple(every[count:]),
        draft_more=tuple(joints),
        other=tuple(mixed_head("", hidden, streams)),
        embedding="embed",
        head="head",
        last_norm="norm",
        **ends(config),
    )


def _drafts(text: Config, count: int) -> int:
    """Layers behind the model's own. With DSpark `num_nextn_predict_layers` still says 1, as before it: there are as
    many as have a ratio."""
    if not dspark.drafts(text):
        return text.about("mtp").count("num_nextn_predict_layers")
    return max(0, len(text.about("sparse").items("compress_ratios")) - count)


def _joint(at: str, hidden: int, streams: int) -> Iterator[Tensor]:
    yield matrix(f"{at}.e_proj", hidden, hidden, "draft")
    yield matrix(f"{at}.h_proj", hidden, hidden, "draft")
    for name in ("enorm", "hnorm", "norm"):
        yield from norm(f"{at}.{name}", hidden)
    yield from mixed_head(f"{at}.", hidden, streams)


def _layer(text: Config, number: int, ratio: int, at: str) -> Layer:
    mixer = compressed(text, ratio, chooses=ratio == 4)
    hashed = number < text.about("experts").count("num_hash_layers") and at.startswith("layers.")
    forward = fed(text)
    more = [*streams(at, mixer.hidden, text.about("model").number("hc_mult"))]
    more.append(
        _choice(text, at, forward) if hashed else vector(f"{at}.ffn.gate.bias", forward.routed, "router", "f32")
    )
    return Layer(at, mixer, forward, mixer.hidden, NORMS, tuple(more))


def fed(text: Config) -> Experts:
    return experts(text, place="ffn", names=("w1", "w3", "w2"))


def _choice(text: Config, at: str, forward: Experts) -> Tensor:
    """The first layers look their experts up by the token's number."""
    shape = (text.number("vocab_size"), forward.active)
    return Tensor(f"{at}.ffn.gate.tid2eid", shape, "router", linear=False, always="i64")


def compressed(text: Config, ratio: int, *, chooses: bool) -> Compressed:
    facts, sparse = text.about("attention"), text.about("sparse")
    return Compressed(
        hidden=facts.number("hidden_size"),
        q_heads=facts.number("num_attention_heads"),
        q_rank=facts.number("q_lora_rank"),
        head_dim=facts.number("head_dim"),
        rope=facts.number("qk_rope_head_dim"),
        o_rank=facts.number("o_lora_rank"),
        o_groups=facts.number("o_groups"),
        window=facts.number("sliding_window"),
        ratio=ratio,
        index_heads=sparse.number("index_n_heads") if chooses else 0,
        index_dim=sparse.number("index_head_dim") if chooses else 0,
        index_top=sparse.number("index_topk") if chooses else 0,
    )


def streams(at: str, hidden: int, count: int, kept: str = "f32") -> Iterator[Tensor]:
    """Hyper-connections: what mixes a layer's parallel streams, before attention and before the feed-forward. `kept`:
    the matrix' own type; empty = the model's."""
    rows = (2 + count) * count
    for part in ("attn", "ffn"):
        yield Tensor(f"{at}.hc_{part}_fn", (rows, count * hidden), "other", linear=False, always=kept)
        yield vector(f"{at}.hc_{part}_base", rows, "other", "f32")
        yield vector(f"{at}.hc_{part}_scale", 3, "other", "f32")


def mixed_head(at: str, hidden: int, count: int) -> Iterator[Tensor]:
    yield Tensor(f"{at}hc_head_fn", (count, count * hidden), "other", linear=False, always="f32")
    yield vector(f"{at}hc_head_base", count, "other", "f32")
    yield vector(f"{at}hc_head_scale", 1, "other", "f32")


READERS = (Reader(("DeepseekV4ForCausalLM",), read, "transformers models/deepseek_v4"),)
