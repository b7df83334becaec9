"""DeepSeek V3 to V3.2, Kimi K2, GLM-5: latent attention, dense layers, then experts; V3.2 and GLM choose tokens."""

from __future__ import annotations

from typing import Any

from sparkloom.inputs.checkpoint.architectures._common import Reader, ends, experts, indexer, latent, mlp
from sparkloom.inputs.checkpoint.config import Config
from sparkloom.inputs.checkpoint.parts import Tensor, matrix, norm
from sparkloom.inputs.checkpoint.shape import Forward, Layer, Shape


def read(config: Config) -> Shape:
    return of_text(config, config.text, "model")


def of_text(config: Config, text: Config, at: str, **more: Any) -> Shape:
    """The language model at its place in the checkpoint."""
    count = text.about("layers").number("num_hidden_layers")
    choosing = _choosing(text, count)
    layers = [_layer(text, f"{at}.layers.{n}", n, choosing[n]) for n in range(count)]
    drafts = text.about("mtp").count("num_nextn_predict_layers")
    draft = [_layer(text, f"{at}.layers.{n}", n, choosing[-1]) for n in range(count, count + drafts)]
    hidden, vocab = text.number("hidden_size"), text.number("vocab_size")
    own = 0 if text.text_of("model_type").startswith("glm") else vocab  # GLM-5's draft layer uses the model's ends
    joints = [tensor for layer in draft for tensor in joint(layer.at, hidden, own)]
    named: dict[str, Any] = {"embedding": f"{at}.embed_tokens", "last_norm": f"{at}.norm"}
    return Shape(layers=tuple(layers), draft=tuple(draft), draft_more=tuple(joints), **named, **ends(config), **more)


def joint(at: str, hidden: int, vocab: int) -> list[Tensor]:
    """What joins a token to the last layer's output before a draft layer, and its own copies of embedding and head."""
    tensors = [matrix(f"{at}.eh_proj", hidden, 2 * hidden, "draft")]
    for name in ("embed_tokens", "shared_head.head") if vocab else ():
        tensors.append(Tensor(f"{at}.{name}.weight", (vocab, hidden), "draft", linear=False))
    for name in ("enorm", "hnorm", "shared_head.norm"):
        tensors += norm(f"{at}.{name}", hidden)
    return tensors


def _choosing(text: Config, count: int) -> list[bool]:
    """Which layers have an indexer of their own; GLM-5.2 shares one between several."""
    if not text.about("sparse").maybe("index_topk"):
        return [False] * (count + 1)
    kinds = text.about("sparse").per_layer(count, "indexer_types")
    return [kind != "shared" for kind in kinds] + [True] if kinds else [True] * (count + 1)


def _layer(text: Config, at: str, number: int, chooses: bool) -> Layer:
    chosen = bool(text.maybe("index_topk"))
    mixer = latent(text, indexer=indexer(text) if chooses else None, chosen=chosen)
    return Layer(at, mixer, forward_of(text, number), mixer.hidden)


def forward_of(text: Config, number: int, *, corrected: bool = False) -> Forward:
    first = text.about("layers").count("first_k_dense_replace")
    every = text.about("layers").maybe("moe_layer_freq") or 1
    if number < first or number % every:
        return mlp(text)
    return experts(text, router_bias=corrected or text.about("experts").text_of("topk_method") == "noaux_tc")


READERS = (
    Reader(
        ("DeepseekV3ForCausalLM", "DeepseekV32ForCausalLM", "GlmMoeDsaForCausalLM"),
        read,
        "the checkpoints' own modeling_deepseek.py; transformers models/deepseek_v32, glm_moe_dsa",
    ),
)
