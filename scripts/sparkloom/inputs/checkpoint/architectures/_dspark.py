"""DSpark: layers behind a model that draft a block at once, fed by what some of its last layers put out."""

from __future__ import annotations

from collections.abc import Iterator

from sparkloom.inputs.checkpoint.config import Config
from sparkloom.inputs.checkpoint.parts import Tensor, matrix, norm


def drafts(text: Config) -> bool:
    """Whether the checkpoint drafts so."""
    return bool(text.about("mtp").items("dspark_target_layer_ids"))


def joint(text: Config, stages: int, names: tuple[str, str]) -> Iterator[Tensor]:
    """What stands beside the layers: the way in at the first, the way out and a small chain of tokens at the last.
    `names`: the two tables of that chain."""
    facts, hidden, vocab = text.about("mtp"), text.number("hidden_size"), text.number("vocab_size")
    rank, last = facts.number("dspark_markov_rank"), stages - 1
    yield matrix("mtp.0.main_proj", hidden, hidden * len(facts.items("dspark_target_layer_ids")), "draft")
    yield from norm("mtp.0.main_norm", hidden)
    yield from norm(f"mtp.{last}.norm", hidden)
    for name in names:
        yield Tensor(f"mtp.{last}.markov_head.{name}.weight", (vocab, rank), "draft", linear=False)
    yield Tensor(f"mtp.{last}.confidence_head.proj.weight", (1, hidden + rank), "draft", linear=False)
