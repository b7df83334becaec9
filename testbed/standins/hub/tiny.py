"""Checkpoints that a real engine loads: a few million random numbers in the shape of a known architecture.

Nothing is learned, so what they answer has no meaning; but each file is what the engine's own loader wants.
One has its last matrix made by hand: each token is followed by one other, so that it recites a page from wherever the
prompt leads it, and ends. What asks whether an answer is text, and which configuration is the fastest, has text there.
"""

from __future__ import annotations

import array
import json
import random
import struct
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

from testbed.base import names

OWNER = "sparkloom-testbed/"
PROFILES = names.REPO / "testbed/make/real/profiles"  # which name these models
LAYERS, HIDDEN, HEADS, KV_HEADS, INTER = 4, 256, 8, 4, 512
EXPERTS, ACTIVE, EXPERT_INTER = 8, 2, 128
HEAD = HIDDEN // HEADS
# Gated delta layers remember in a matrix of DELTA x DELTA for each of so many heads; each 4th layer attends.
DELTA, DELTA_KEYS, DELTA_HEADS, DELTA_WINDOW, ATTENDS = 32, 4, 8, 4, 4
CONTEXT = 4096
SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
RECITES = f"{OWNER}tiny-recites"
# Its layers look at few of a prompt's words and add what they see; what does not depend on the prompt adds little.
RECITAL = {
    "q_proj": 6.0,
    "k_proj": 6.0,
    "v_proj": 1.0,
    "o_proj": 1.0,
    "gate_proj": 0.1,
    "up_proj": 0.1,
    "down_proj": 0.1,
}
PAGE = Path(__file__).with_name("page.txt")
Tensors = Iterator[tuple[str, tuple[int, ...], float]]


def known(model: str) -> bool:
    return model.startswith(OWNER)


def mixes(model: str) -> bool:
    """Whether it is the mixture of experts (as Qwen3's), not the dense one (as Qwen2's)."""
    return model == f"{OWNER}tiny-moe"


def remembers(model: str) -> bool:
    """Whether most of its layers keep a state of fixed size (as Qwen3-Next's), instead of every token's keys."""
    return model == f"{OWNER}tiny-hybrid"


def write(folder: Path, model: str, seed: int = 1) -> None:
    """A transformers checkpoint."""
    folder.mkdir(parents=True, exist_ok=True)
    vocabulary = words(model)
    texts = {
        "config.json": _config(model, len(vocabulary), vocabulary),
        "generation_config.json": {"eos_token_id": vocabulary["<|im_end|>"], "do_sample": True},
        "tokenizer.json": tokenizer(vocabulary),
        "tokenizer_config.json": {
            "tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": CONTEXT, "chat_template": TEMPLATE,
            "eos_token": "<|im_end|>", "pad_token": "<|endoftext|>", "clean_up_tokenization_spaces": False,
        },
    }  # fmt: skip
    for name, data in texts.items():
        (folder / name).write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n")
    source = random.Random(f"{model}/{seed}")
    if model == RECITES:
        _weights(folder / "model.safetensors", list(_tensors(model, len(vocabulary))), source, vocabulary)
    else:
        _weights(folder / "model.safetensors", list(_tensors(model, len(vocabulary))), source)
    (folder / "README.md").write_text(f"# {model}\n\nRandom weights (seed {seed}): its answers have no meaning.\n")


def _config(model: str, size: int, vocabulary: dict[str, int]) -> dict[str, Any]:
    of_its_kind: dict[str, Any] = {
        "architectures": ["Qwen2ForCausalLM"],
        "model_type": "qwen2",
        "intermediate_size": INTER,
        "max_window_layers": LAYERS,
        "use_sliding_window": False,
    }
    if mixes(model):
        of_its_kind = {
            "architectures": ["Qwen3MoeForCausalLM"],
            "model_type": "qwen3_moe",
            "intermediate_size": INTER,
            "head_dim": HEAD,
            "num_experts": EXPERTS,
            "num_experts_per_tok": ACTIVE,
            "moe_intermediate_size": EXPERT_INTER,
            "norm_topk_prob": True,
            "decoder_sparse_step": 1,
            "mlp_only_layers": [],
            "attention_bias": False,
        }
    if remembers(model):
        of_its_kind = {
            "architectures": ["Qwen3NextForCausalLM"],
            "model_type": "qwen3_next",
            "intermediate_size": INTER,
            "head_dim": HEAD,
            "partial_rotary_factor": 0.25,
            "full_attention_interval": ATTENDS,
            "linear_conv_kernel_dim": DELTA_WINDOW,
            "linear_key_head_dim": DELTA,
            "linear_value_head_dim": DELTA,
            "linear_num_key_heads": DELTA_KEYS,
            "linear_num_value_heads": DELTA_HEADS,
            "num_experts": EXPERTS,
            "num_experts_per_tok": ACTIVE,
            "moe_intermediate_size": EXPERT_INTER,
            "shared_expert_intermediate_size": 0,
            "norm_topk_prob": True,
            "decoder_sparse_step": 1,
            "mlp_only_layers": [],
            "attention_bias": False,
        }
    return of_its_kind | {
        "hidden_size": HIDDEN,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS,
        "vocab_size": size,
        "max_position_embeddings": CONTEXT,
        "rms_norm_eps": 1e-6,
        "rope_theta": 10000.0,
        "hidden_act": "silu",
        "tie_word_embeddings": False,
        "torch_dtype": "bfloat16",
        "bos_token_id": vocabulary["<|endoftext|>"],
        "eos_token_id": vocabulary["<|im_end|>"],
    }


def _tensors(model: str, size: int) -> Tensors:
    """Name, shape, and how far its numbers spread; 0 for ones."""
    yield "model.embed_tokens.weight", (size, HIDDEN), 1.0
    yield "model.norm.weight", (HIDDEN,), 0
    yield "lm_head.weight", (size, HIDDEN), HIDDEN**-0.5
    for layer in range(LAYERS):
        of = f"model.layers.{layer}."
        yield of + "input_layernorm.weight", (HIDDEN,), 0
        yield of + "post_attention_layernorm.weight", (HIDDEN,), 0
        if remembers(model) and (layer + 1) % ATTENDS:
            yield from _delta(f"{of}linear_attn.")
        else:
            yield from _attends(f"{of}self_attn.", model)
        if mixes(model) or remembers(model):
            yield of + "mlp.gate.weight", (EXPERTS, HIDDEN), HIDDEN**-0.5
            for expert in range(EXPERTS):
                yield from _feeds(f"{of}mlp.experts.{expert}.", EXPERT_INTER)
        else:
            yield from _feeds(f"{of}mlp.", INTER)


def _attends(of: str, model: str) -> Tensors:
    gated = 2 if remembers(model) else 1  # a gate for each of its outputs comes with the queries
    for name, width in (("q", gated * HIDDEN), ("k", KV_HEADS * HEAD), ("v", KV_HEADS * HEAD)):
        yield f"{of}{name}_proj.weight", (width, HIDDEN), HIDDEN**-0.5
        if not mixes(model) and not remembers(model):
            yield f"{of}{name}_proj.bias", (width,), 0.02
    yield of + "o_proj.weight", (HIDDEN, HIDDEN), HIDDEN**-0.5
    if mixes(model) or remembers(model):
        yield of + "q_norm.weight", (HEAD,), 0
        yield of + "k_norm.weight", (HEAD,), 0


def _delta(of: str) -> Tensors:
    keys, values = DELTA_KEYS * DELTA, DELTA_HEADS * DELTA
    yield of + "in_proj_qkvz.weight", (2 * keys + 2 * values, HIDDEN), HIDDEN**-0.5
    yield of + "in_proj_ba.weight", (2 * DELTA_HEADS, HIDDEN), HIDDEN**-0.5
    yield of + "conv1d.weight", (2 * keys + values, 1, DELTA_WINDOW), DELTA_WINDOW**-0.5
    yield of + "dt_bias", (DELTA_HEADS,), 0
    yield of + "A_log", (DELTA_HEADS,), 0.5
    yield of + "norm.weight", (DELTA,), 0
    yield of + "out_proj.weight", (HIDDEN, values), values**-0.5


def _feeds(of: str, inter: int) -> Tensors:
    for name in ("gate", "up"):
        yield of + f"{name}_proj.weight", (inter, HIDDEN), HIDDEN**-0.5
    yield of + "down_proj.weight", (HIDDEN, inter), inter**-0.5


def _weights(
    path: Path,
    tensors: list[tuple[str, tuple[int, ...], float]],
    source: random.Random,
    recites: dict[str, int] | None = None,
) -> None:
    """With a vocabulary that `recites`, the last matrix is made of the first one."""
    table: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    offset = 0
    for name, shape, _ in tensors:
        end = offset + 2 * _count(shape)
        table[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(table, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    first = b""
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for name, shape, spread in tensors:
            louder = RECITAL.get(name.split(".")[-2], 1.0) if recites and "layers" in name else 1.0
            raw = _bf16(_count(shape), spread * louder, source)
            first = first or raw
            file.write(_moved(first, recites) if recites and name == "lm_head.weight" else raw)


def _moved(rows: bytes, vocabulary: dict[str, int]) -> bytes:
    """A token's row is the one before it in the first matrix; each of the page's follows a turn's newline as well.

    All are alike to that, so an answer begins where the layers' look at the prompt leads it.
    """
    width, after = 2 * HIDDEN, _followers(vocabulary)
    before = {follower: token for token, follower in enumerate(after) if follower >= 0}
    found = [rows[before[token] * width :][:width] if token in before else bytes(width) for token in range(len(after))]
    turn = _numbers(rows[vocabulary[_letters()[ord("\n")]] * width :][:width])
    for token in _page(vocabulary):
        mine = _numbers(found[token])
        missing = 1 - _product(mine, turn) / _product(turn, turn)
        found[token] = _halves(array.array("f", (one + missing * other for one, other in zip(mine, turn, strict=True))))
    return b"".join(found)


def _product(one: array.array[float], other: array.array[float]) -> float:
    return sum(left * right for left, right in zip(one, other, strict=True))


def _followers(vocabulary: dict[str, int]) -> list[int]:
    """Which token comes after each, -1 for none; the end of the turn comes after the page."""
    after = [-1] * len(vocabulary)
    for token, follower in pairwise([*_page(vocabulary), vocabulary["<|im_end|>"]]):
        after[token] = follower
    return after


def _page(vocabulary: dict[str, int]) -> range:
    return range(256 + len(SPECIAL), len(vocabulary))


def _count(shape: tuple[int, ...]) -> int:
    count = 1
    for side in shape:
        count *= side
    return count


def _bf16(count: int, spread: float, source: random.Random) -> bytes:
    """The upper halves of as many float32."""
    numbers = (source.gauss(0, spread) for _ in range(count)) if spread else (1.0 for _ in range(count))
    return _halves(array.array("f", numbers))


def _halves(numbers: array.array[float]) -> bytes:
    raw, halves = numbers.tobytes(), bytearray(2 * len(numbers))
    halves[0::2], halves[1::2] = raw[2::4], raw[3::4]
    return bytes(halves)


def _numbers(halves: bytes) -> array.array[float]:
    raw = bytearray(2 * len(halves))
    raw[2::4], raw[3::4] = halves[0::2], halves[1::2]
    return array.array("f", bytes(raw))


def words(model: str = "") -> dict[str, int]:
    """Every byte's letter, then the special words, then what one model has of its page, by their numbers."""
    page = _pieces(PAGE.read_text()) if model == RECITES else []
    return {word: number for number, word in enumerate([*_letters(), *SPECIAL, *page])}


def _pieces(page: str) -> list[str]:
    """The page in pieces of which none comes twice: a word, or as many as it takes."""
    blank = _letters()[ord(" ")]
    pieces: list[str] = []
    piece = ""
    for number, word in enumerate(page.split()):
        piece += (blank if number else "") + word
        if piece not in pieces and len(piece) > 1:
            pieces.append(piece)
            piece = ""
    return pieces


def _letters() -> list[str]:
    """A letter for each byte, as byte-level tokenizers write them: what cannot be printed moves beyond 255."""
    printed = [*range(33, 127), *range(161, 173), *range(174, 256)]
    moved = iter(range(256, 512))
    return [chr(byte if byte in printed else next(moved)) for byte in range(256)]


def tokenizer(vocabulary: dict[str, int], specials: Iterable[str] = SPECIAL) -> dict[str, Any]:
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    special = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    return {
        "version": "1.0", "truncation": None, "padding": None, "normalizer": None, "post_processor": None,
        "added_tokens": [{"id": vocabulary[word], "content": word, **special} for word in specials],
        "pre_tokenizer": level, "decoder": level,
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
                  "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
                  "vocab": vocabulary, "merges": []},
    }  # fmt: skip
