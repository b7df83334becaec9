"""Kimi K2.5 and after: DeepSeek V3's layers below a vision tower."""

from __future__ import annotations

from collections.abc import Iterator

from sparkloom.inputs.checkpoint.architectures._common import Reader
from sparkloom.inputs.checkpoint.architectures.deepseek import of_text
from sparkloom.inputs.checkpoint.config import Config
from sparkloom.inputs.checkpoint.parts import Tensor, biased, norm
from sparkloom.inputs.checkpoint.shape import Shape


def read(config: Config) -> Shape:
    vision = config.section("vision_config")
    return of_text(
        config, config.text, "language_model.model", head="language_model.lm_head",
        vision=tuple(tower(vision)) if vision else (),
    )  # fmt: skip


def tower(vision: Config) -> Iterator[Tensor]:
    """MoonViT."""
    facts, at = vision.about("vision"), "vision_tower"
    hidden, inter = facts.number("vt_hidden_size"), facts.number("vt_intermediate_size")
    patch = facts.number("patch_size")
    yield Tensor(f"{at}.patch_embed.proj.weight", (hidden, 3, patch, patch), "vision", linear=False)
    yield Tensor(f"{at}.patch_embed.proj.bias", (hidden,), "vision", linear=False)
    grid = (facts.number("init_pos_emb_height"), facts.number("init_pos_emb_width"), hidden)
    yield Tensor(f"{at}.patch_embed.pos_emb.weight", grid, "vision", linear=False)
    for number in range(facts.number("vt_num_hidden_layers")):
        block = f"{at}.encoder.blocks.{number}"
        yield from norm(f"{block}.norm0", hidden, bias=True)
        yield from norm(f"{block}.norm1", hidden, bias=True)
        yield from biased(f"{block}.wqkv", 3 * hidden, hidden, "vision")
        yield from biased(f"{block}.wo", hidden, hidden, "vision")
        yield from biased(f"{block}.mlp.fc0", inter, hidden, "vision")
        yield from biased(f"{block}.mlp.fc1", hidden, inter, "vision")
    yield from norm(f"{at}.encoder.final_layernorm", hidden, bias=True)
    merged = hidden * 4
    yield from norm("mm_projector.pre_norm", hidden, bias=True)
    yield from biased("mm_projector.proj.0", merged, merged, "vision")
    yield from biased("mm_projector.proj.2", facts.number("text_hidden_size"), merged, "vision")


READERS = (Reader(("KimiK25ForConditionalGeneration",), read, "vLLM model_executor/models/kimi_k25.py"),)
