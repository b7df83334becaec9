"""NemotronH (Nemotron 3): each layer is one thing: Mamba-2, attention, experts or a plain feed-forward."""

from __future__ import annotations

from sparkloom.inputs.checkpoint.architectures._common import Reader, attention, ends, experts, mlp
from sparkloom.inputs.checkpoint.config import Config
from sparkloom.inputs.checkpoint.parts import Tensor, matrix, norm
from sparkloom.inputs.checkpoint.recurrent import Mamba2
from sparkloom.inputs.checkpoint.shape import Layer, Shape

LETTERS = {"M": "mamba", "*": "attention", "E": "moe", "-": "mlp"}


def read(config: Config) -> Shape:
    text = config.text
    words = _words(text, "layers", "layers_block_type", "hybrid_override_pattern")
    drafted = _words(text, "mtp", "mtp_layers_block_type", "mtp_hybrid_override_pattern")
    hidden = text.number("hidden_size")
    times = text.about("mtp").count("num_nextn_predict_layers") if drafted else 0
    layers = [_layer(text, f"backbone.layers.{n}", word, hidden) for n, word in enumerate(words)]
    draft = [_layer(text, f"mtp.layers.{n}", word, hidden) for n, word in enumerate(drafted * times)]
    return Shape(
        layers=tuple(layers),
        draft=tuple(draft),
        draft_more=tuple(_joint(hidden)) if draft else (),
        embedding="backbone.embeddings",
        last_norm="backbone.norm_f",
        **ends(config),
    )


def _joint(hidden: int) -> list[Tensor]:
    names = ("mtp.layers.0.enorm", "mtp.layers.0.hnorm", "mtp.layers.0.final_layernorm")
    joined = matrix("mtp.layers.0.eh_proj", hidden, 2 * hidden, "draft")
    return [joined, *(tensor for name in names for tensor in norm(name, hidden))]


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


def _layer(text: Config, at: str, word: str, hidden: int) -> Layer:
    if word == "mamba":
        return Layer(at, _mamba(text), None, hidden, ("norm",))
    if word == "attention":
        return Layer(at, attention(text, place="mixer"), None, hidden, ("norm",))
    if word == "moe":
        latent = text.about("experts").count("moe_latent_size")
        forward = experts(text, gated=False, latent=latent, router_bias=True, place="mixer")
        return Layer(at, None, forward, hidden, ("norm",))
    if word == "mlp":
        return Layer(at, None, mlp(text, gated=False, place="mixer"), hidden, ("norm",))
    raise text.refusal(f"layers_block_type has a layer '{word}'; known are mamba, attention, moe and mlp")


def _mamba(text: Config) -> Mamba2:
    facts = text.about("mamba")
    return Mamba2(
        hidden=facts.number("hidden_size"),
        heads=facts.number("mamba_num_heads"),
        head_dim=facts.number("mamba_head_dim"),
        groups=facts.number("n_groups"),
        state=facts.number("ssm_state_size"),
        conv=facts.number("conv_kernel"),
        bias=facts.flag("mamba_proj_bias"),
        conv_bias=facts.flag("use_conv_bias"),
    )


READERS = (Reader(("NemotronHForCausalLM",), read, "the checkpoints' own modeling_nemotron_h.py, transformers"),)
