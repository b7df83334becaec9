"""DeepSeek V3 to V3.2, Kimi K2 and K2.5, GLM-5: latent attention, dense layers, then experts.

V3.2 and GLM-5 choose tokens; K2.5 has a vision tower beside. Kimi Linear: three layers of delta attention for each of
latent attention.
"""

from __future__ import annotations

from typing import Any

from sparkloom.inputs.checkpoint import tensors
from sparkloom.inputs.checkpoint.architectures import _common as common
from sparkloom.inputs.checkpoint.architectures._common import reads
from sparkloom.inputs.checkpoint.config import Config
from sparkloom.inputs.checkpoint.parts import DeltaAttention, Forward, Indexer, Latent
from sparkloom.inputs.checkpoint.shape import Layer, Shape


@reads(
    "DeepseekV3ForCausalLM",
    "DeepseekV32ForCausalLM",
    "GlmMoeDsaForCausalLM",
    source="the checkpoints' own modeling_deepseek.py; transformers models/deepseek_v32, glm_moe_dsa",
)
def deepseek(config: Config) -> Shape:
    return _below(config, "model")


@reads("KimiK25ForConditionalGeneration", source="vLLM model_executor/models/kimi_k25.py")
def kimi_k25(config: Config) -> Shape:
    vision = tensors.tower(config, "moonvit")
    return _below(config, "language_model.model", head="language_model.lm_head", vision=vision)


@reads("KimiLinearForCausalLM", source="transformers models/kimi_linear; the checkpoint's own list")
def kimi_linear(config: Config) -> Shape:
    text = config.text
    line, whole = text.mapping("linear_attn_config"), common.part(Latent, text)
    delta = common.part(DeltaAttention, line, hidden=whole.hidden)
    full = line.about("layers").items("full_attn_layers")  # counted from 1
    numbers = range(common.number_of_layers(text))
    block = {"corrected": True, **common.SPARSE_BLOCK}
    parts = ((whole if n + 1 in full else delta, forward_of(text, n, **block)) for n in numbers)
    return common.model(config, "model", common.layers("model", parts))


def _below(config: Config, at: str, **more: Any) -> Shape:
    """The language model at its place in the checkpoint."""
    text, count = config.text, common.number_of_layers(config.text)
    choosing = _choosing(text, count)
    layers = [_layer(text, f"{at}.layers.{n}", n, choosing[n]) for n in range(count)]
    drafts = text.about("mtp").count("num_nextn_predict_layers")
    draft = [_layer(text, f"{at}.layers.{n}", n, choosing[-1]) for n in range(count, count + drafts)]
    glm = text.text_of("model_type").startswith("glm")  # GLM-5's draft layer uses the model's ends
    return common.model(config, at, layers, **drafting(text, draft, own_ends=not glm), **more)


def drafting(text: Config, layers: list[Layer], *, own_ends: bool) -> dict[str, Any]:
    """Draft layers, each behind what joins a token to the last layer's output; perhaps with ends of their own."""
    joints = (tensors.extras(text, "draft_joint", layer.at, own_ends=own_ends) for layer in layers)
    return {"draft": tuple(layers), "draft_more": tuple(tensor for joint in joints for tensor in joint)}


def _choosing(text: Config, count: int) -> list[bool]:
    """Which layers have an indexer of their own; GLM-5.2 shares one between several."""
    if not text.about("sparse").maybe("index_topk"):
        return [False] * (count + 1)
    kinds = text.about("sparse").per_layer(count, "indexer_types")
    return [kind != "shared" for kind in kinds] + [True] if kinds else [True] * (count + 1)


def _layer(text: Config, at: str, number: int, chooses: bool) -> Layer:
    chosen = bool(text.maybe("index_topk"))
    mixer = common.part(Latent, text, indexer=common.part(Indexer, text) if chooses else None, chosen=chosen)
    return Layer(at, mixer, forward_of(text, number))


def forward_of(text: Config, number: int, *, corrected: bool = False, **more: Any) -> Forward:
    first = text.about("layers").count("first_k_dense_replace")
    every = text.about("layers").maybe("moe_layer_freq") or 1
    if number < first or number % every:
        return common.mlp(text)
    corrected = corrected or text.about("experts").text_of("topk_method") == "noaux_tc"
    return common.experts(text, router_bias=corrected, **more)
