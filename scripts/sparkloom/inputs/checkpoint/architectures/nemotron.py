"""NemotronH (Nemotron 3): each layer is one thing: Mamba-2, attention, experts or a plain feed-forward. Llama Nemotron
(a search over blocks): each layer says how wide it is, and some lack a part.
"""

from __future__ import annotations

from sparkloom.inputs.checkpoint import tensors
from sparkloom.inputs.checkpoint.architectures import _common as common
from sparkloom.inputs.checkpoint.architectures._common import reads
from sparkloom.inputs.checkpoint.config import Config
from sparkloom.inputs.checkpoint.parts import Attention, Mamba2, Mlp
from sparkloom.inputs.checkpoint.shape import Layer, Shape

LETTERS = {"M": "mamba", "*": "attention", "E": "moe", "-": "mlp"}
MULTIPLE = 256  # a searched block's widths are rounded up to it


@reads("NemotronHForCausalLM", source="the checkpoints' own modeling_nemotron_h.py, transformers")
def nemotron_h(config: Config) -> Shape:
    text = config.text
    words = _words(text, "layers", "layers_block_type", "hybrid_override_pattern")
    drafted = _words(text, "mtp", "mtp_layers_block_type", "mtp_hybrid_override_pattern")
    times = text.about("mtp").count("num_nextn_predict_layers") if drafted else 0
    layers = [_layer(text, f"backbone.layers.{n}", word) for n, word in enumerate(words)]
    draft = [_layer(text, f"mtp.layers.{n}", word) for n, word in enumerate(drafted * times)]
    more = tensors.extras(text, "nemotron_joint", "mtp.layers.0") if draft else ()
    ends = {"embedding": "backbone.embeddings", "last_norm": "backbone.norm_f"}
    return common.model(config, "backbone", layers, draft=tuple(draft), draft_more=more, **ends)


def _words(text: Config, topic: str, spelled: str, letters: str) -> list[str]:
    said = text.about(topic).items(spelled)
    if said:
        return [str(word) for word in said]
    pattern = text.about(topic).text_of(letters)
    strange = set(pattern) - set(LETTERS)
    if strange:
        raise text.refusal(f"{letters} has the letter {min(strange)!r}; known are {', '.join(LETTERS)}")
    if not pattern and topic == "layers":
        raise text.missing(spelled, letters)
    return [LETTERS[letter] for letter in pattern]


def _layer(text: Config, at: str, word: str) -> Layer:
    if word == "mamba":
        return Layer(at, _mamba(text), None, ("norm",))
    if word == "attention":
        return Layer(at, common.attention(text, place="mixer"), None, ("norm",))
    if word == "moe":
        latent = text.about("experts").count("moe_latent_size")
        forward = common.experts(text, gated=False, latent=latent, router_bias=True, place="mixer")
        return Layer(at, None, forward, ("norm",))
    if word == "mlp":
        return Layer(at, None, common.mlp(text, gated=False, place="mixer"), ("norm",))
    raise text.refusal(f"layers_block_type has a layer '{word}'; known are mamba, attention, moe and mlp")


def _mamba(text: Config) -> Mamba2:
    facts = text.about("mamba")
    return common.part(Mamba2, text, bias=facts.flag("mamba_proj_bias"), conv_bias=facts.flag("use_conv_bias"))


@reads("DeciLMForCausalLM", source="the checkpoints' own modeling_decilm.py, vLLM nemotron_nas.py")
def searched(config: Config) -> Shape:
    text = config.text
    blocks = text.about("layers").items("block_configs")
    hidden = text.number("hidden_size")
    layers = []
    for number, block in enumerate(blocks):
        if not isinstance(block, dict):
            raise text.refusal(f"block_configs[{number}] is no mapping")
        at = f"model.layers.{number}"
        mixer, forward = _mixer(text, Config(block, text.file)), _forward(hidden, Config(block, text.file))
        norms = (*(("input_layernorm",) if mixer else ()), *(("post_attention_layernorm",) if forward else ()))
        layers.append(Layer(at, mixer, forward, norms))
    return common.model(config, "model", layers)


def _mixer(text: Config, block: Config) -> Attention | None:
    said = block.section("attention")
    if said is None or said.flag("no_op"):
        return None
    if said.flag("replace_with_linear"):
        raise text.refusal("block_configs: a layer whose attention is one matrix; this reader does not know its width")
    facts = text.about("attention")
    heads, hidden = facts.number("num_attention_heads"), facts.number("hidden_size")
    head = facts.maybe("head_dim") or hidden // max(heads, 1)
    return Attention(hidden, heads, heads // max(said.number("n_heads_in_group"), 1), head)


def _forward(hidden: int, block: Config) -> Mlp | None:
    said = block.section("ffn")
    if said is None or said.flag("no_op"):
        return None
    factor = said.value("ffn_mult")
    if not isinstance(factor, int | float):
        raise said.missing("ffn_mult")
    return Mlp(hidden, -(-int(2 * factor * hidden / 3) // MULTIPLE) * MULTIPLE)
