"""GLM-4.5 to 4.7: attention with biases, a few dense layers, then experts."""

from __future__ import annotations

from sparkloom.inputs.checkpoint.architectures._common import Reader, attention, ends
from sparkloom.inputs.checkpoint.architectures.deepseek import forward_of, joint
from sparkloom.inputs.checkpoint.config import Config
from sparkloom.inputs.checkpoint.shape import Layer, Shape


def read(config: Config) -> Shape:
    text = config.text
    facts = text.about("attention")
    mixer = attention(text, bias=facts.flag("attention_bias"), norms="head" if facts.flag("use_qk_norm") else "")
    count, drafts = (
        text.about("layers").number("num_hidden_layers"),
        text.about("mtp").count("num_nextn_predict_layers"),
    )
    every = [
        Layer(f"model.layers.{n}", mixer, forward_of(text, n, corrected=True), mixer.hidden)
        for n in range(count + drafts)
    ]
    joints = [t for layer in every[count:] for t in joint(layer.at, mixer.hidden, text.number("vocab_size"))]
    return Shape(layers=tuple(every[:count]), draft=tuple(every[count:]), draft_more=tuple(joints), **ends(config))


READERS = (Reader(("Glm4MoeForCausalLM",), read, "transformers models/glm4_moe"),)
