"""The vision tower of Qwen3-VL and after."""

from __future__ import annotations

from collections.abc import Iterator

from sparkloom.inputs.checkpoint.config import Config
from sparkloom.inputs.checkpoint.parts import Tensor, biased, norm


def tower(vision: Config, at: str = "model.visual") -> Iterator[Tensor]:
    facts = vision.about("vision")
    hidden, inter, out = facts.number("hidden_size"), facts.number("intermediate_size"), facts.number("out_hidden_size")
    merged = hidden * facts.number("spatial_merge_size") ** 2
    patch = (facts.number("in_channels"), facts.number("temporal_patch_size"), *[facts.number("patch_size")] * 2)
    yield Tensor(f"{at}.patch_embed.proj.weight", (hidden, *patch), "vision", linear=False)
    yield Tensor(f"{at}.patch_embed.proj.bias", (hidden,), "vision", linear=False)
    positions = facts.number("num_position_embeddings")
    yield Tensor(f"{at}.pos_embed.weight", (positions, hidden), "vision", linear=False)
    for number in range(facts.number("depth")):
        block = f"{at}.blocks.{number}"
        yield from norm(f"{block}.norm1", hidden, bias=True)
        yield from norm(f"{block}.norm2", hidden, bias=True)
        yield from biased(f"{block}.attn.qkv", 3 * hidden, hidden, "vision")
        yield from biased(f"{block}.attn.proj", hidden, hidden, "vision")
        yield from biased(f"{block}.mlp.linear_fc1", inter, hidden, "vision")
        yield from biased(f"{block}.mlp.linear_fc2", hidden, inter, "vision")
    yield from _merger(f"{at}.merger", hidden, merged, out)
    for number, _ in enumerate(facts.items("deepstack_visual_indexes")):
        yield from _merger(f"{at}.deepstack_merger_list.{number}", merged, merged, out)


def _merger(name: str, normed: int, merged: int, out: int) -> Iterator[Tensor]:
    yield from norm(f"{name}.norm", normed, bias=True)
    yield from biased(f"{name}.linear_fc1", merged, merged, "vision")
    yield from biased(f"{name}.linear_fc2", out, merged, "vision")
