"""A GGUF file of a Llama as a folder that engines in Python load: the same numbers in float32, its words, its template.

    PYTHONPATH=<gguf and numpy> python -m testbed.standins.hub.unpack FILE.gguf FOLDER

What is packed in 4 bits is a product and a sum of float16, which neither bfloat16 nor float16 can hold.
"""

from __future__ import annotations

import json
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gguf import GGUFReader, ReaderTensor
from gguf.quants import dequantize
from numpy import float32

from testbed.standins.hub import tiny

NAMES = {
    "token_embd": "model.embed_tokens", "output": "lm_head", "output_norm": "model.norm", "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj",
    "attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm", "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj",
}  # fmt: skip
CONTROL = 3  # llama.cpp's number for words such as <|im_end|>
ROLES = {"bos": "bos", "eos": "eos", "padding": "pad"}


class Source:
    def __init__(self, file: Path) -> None:
        self.reader = GGUFReader(file)

    def fact(self, name: str) -> Any:
        return self.reader.fields[name].contents()

    def number(self, name: str) -> Any:
        return self.fact(f"llama.{name}")

    @property
    def heads(self) -> dict[str, int]:
        """Of the matrices whose rows llama.cpp keeps in another order: both halves of a head's rotation in turn."""
        return {"attn_q": self.number("attention.head_count"), "attn_k": self.number("attention.head_count_kv")}

    def tensors(self) -> Iterator[tuple[str, ReaderTensor, str]]:
        for tensor in sorted(self.reader.tensors, key=lambda each: str(each.name)):
            *layer, part, kind = tensor.name.split(".")
            within = f"model.layers.{layer[1]}." if layer else ""
            yield f"{within}{NAMES[part]}.{kind}", tensor, part

    def values(self, tensor: ReaderTensor, part: str) -> Any:
        numbers = dequantize(tensor.data, tensor.tensor_type).astype(float32)
        if heads := self.heads.get(part):
            rows, columns = numbers.shape
            turned = numbers.reshape(heads, rows // heads // 2, 2, columns).swapaxes(1, 2)
            numbers = turned.reshape(rows, columns)
        return numbers


def config(source: Source) -> dict[str, Any]:
    hidden, heads = source.number("embedding_length"), source.number("attention.head_count")
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": hidden,
        "intermediate_size": source.number("feed_forward_length"),
        "num_hidden_layers": source.number("block_count"),
        "num_attention_heads": heads,
        "num_key_value_heads": source.number("attention.head_count_kv"),
        "head_dim": hidden // heads,
        "vocab_size": source.number("vocab_size"),
        "max_position_embeddings": source.number("context_length"),
        "rms_norm_eps": round(source.number("attention.layer_norm_rms_epsilon"), 9),  # 1e-05, kept in float32
        "rope_theta": source.number("rope.freq_base"),
        "hidden_act": "silu",
        "attention_bias": False,
        "mlp_bias": False,
        "tie_word_embeddings": not any(tensor.name == "output.weight" for tensor in source.reader.tensors),
        "torch_dtype": "float32",
        **roles(source),
    }


def roles(source: Source) -> dict[str, int]:
    return {f"{ours}_token_id": source.fact(f"tokenizer.ggml.{its}_token_id") for its, ours in ROLES.items()}


def tokenizer(source: Source) -> tuple[dict[str, Any], dict[str, Any]]:
    """tokenizer.json and tokenizer_config.json. Each digit is a word of its own ("smollm", as llama.cpp calls it)."""
    words = source.fact("tokenizer.ggml.tokens")
    kinds = source.fact("tokenizer.ggml.token_type")
    special = [word for word, kind in zip(words, kinds, strict=True) if kind == CONTROL]
    if source.fact("tokenizer.ggml.pre") != "smollm":
        raise ValueError(f"no tokenizer known for {source.fact('tokenizer.ggml.pre')}")
    made = tiny.tokenizer({word: number for number, word in enumerate(words)}, special)
    digits = {"type": "Digits", "individual_digits": True}
    made["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [digits, made["pre_tokenizer"]]}
    made["model"]["merges"] = source.fact("tokenizer.ggml.merges")
    named = {name.removesuffix("_id"): words[number] for name, number in roles(source).items()}
    return made, {
        "tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": source.number("context_length"),
        "chat_template": source.fact("tokenizer.chat_template"), "clean_up_tokenization_spaces": False, **named,
    }  # fmt: skip


def weights(source: Source, path: Path) -> None:
    table: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    offset = 0
    for name, tensor, _ in source.tensors():
        shape = [int(side) for side in reversed(tensor.shape)]
        end = offset + 4 * int(tensor.n_elements)
        table[name] = {"dtype": "F32", "shape": shape, "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(table, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for _, tensor, part in source.tensors():
            file.write(source.values(tensor, part).tobytes())


def write(file: Path, folder: Path) -> None:
    source = Source(file)
    words, about_words = tokenizer(source)
    texts = {
        "config.json": config(source),
        "generation_config.json": {**roles(source), "do_sample": False},
        "tokenizer.json": words,
        "tokenizer_config.json": about_words,
    }
    for name, data in texts.items():
        (folder / name).write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n")
    weights(source, folder / "model.safetensors")


if __name__ == "__main__":
    write(Path(sys.argv[1]), Path(sys.argv[2]))
