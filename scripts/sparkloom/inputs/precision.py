"""What a parameter weighs, by the word for the format it is stored in; and who packs checkpoints that way.

Bits per weight count everything that a format stores for its weights: scales, zero points, codebooks by block. A word
that is not known is refused with the near ones, so that a new format is stated (`bits-4.25`) and not guessed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache


@dataclass(frozen=True, slots=True)
class Format:
    word: str
    bits: float  # per weight, scales and zero points included
    why: str

    @property
    def bytes(self) -> float:
        return self.bits / 8


_PLAIN = (
    Format("fp32", 32, "four bytes"),
    Format("bf16", 16, "two bytes"),
    Format("fp16", 16, "two bytes"),
    Format("fp8", 8, "one byte; a scale per tensor or per channel weighs nothing"),
    Format("mxfp8", 8.25, "one byte and an exponent byte per 32"),
    Format("int8", 8, "one byte; a scale per channel weighs nothing"),
    Format("mxfp6", 6.25, "six bits and an exponent byte per 32"),
    Format("nvfp4", 4.5, "four bits and an fp8 scale per 16"),
    Format("mxfp4", 4.25, "four bits and an exponent byte per 32"),
    Format("nf4", 4.5, "bitsandbytes: four bits and an fp32 scale per 64"),
    Format("nf4-double", 4.127, "bitsandbytes: four bits, an 8-bit scale per 64 and an fp32 one per 256 of those"),
    Format("int4", 4.15625, "four bits and, per 128, a 2-byte scale and a 4-bit zero point: int4-g128"),
    Format("q2", 2.72, "llama.cpp's mixed 2-bit formats on average; iq2_m and the like are more exact"),
)
# Bits per weight of whole files: llama.cpp's own table (tools/quantize/README.md, Llama-3.1-8B). A file mixes types by
# tensor and model, so a large mixture of experts is a tenth lighter; checkpoint.size_gb says it exactly.
_GGUF_FILES = {
    "iq1_s": 2.0042, "iq1_m": 2.1460, "iq2_xxs": 2.3824, "iq2_xs": 2.5882, "iq2_s": 2.7403, "iq2_m": 2.9294,
    "iq3_xxs": 3.2548, "iq3_xs": 3.4977, "iq3_s": 3.6606, "iq3_m": 3.7628, "iq4_xs": 4.4597, "iq4_nl": 4.6818,
    "q2_k_s": 2.9697, "q2_k": 3.1593, "q3_k_s": 3.6429, "q3_k_m": 3.9960, "q3_k_l": 4.2979, "q4_k_s": 4.6672,
    "q4_k_m": 4.8944, "q5_k_s": 5.5704, "q5_k_m": 5.7036, "q6_k": 6.5633, "q8_0": 8.5008,
}  # fmt: skip
# One tensor's type: bytes of a block over its weights (ggml-common.h).
_GGML_TYPES = {
    "q3_k": (110, 256), "q4_k": (144, 256), "q5_k": (176, 256), "q4_0": (18, 32), "q4_1": (20, 32), "q5_0": (22, 32),
    "q5_1": (24, 32), "tq1_0": (54, 256), "tq2_0": (66, 256),
}  # fmt: skip
# Unsloth's dynamic files of the size XL, and the file of llama.cpp's that they are near.
_DYNAMIC_XL = {
    "q2_k_xl": "q2_k_s", "q3_k_xl": "q3_k_s", "q4_k_xl": "q4_k_s", "q5_k_xl": "q5_k_m", "q6_k_xl": "q6_k",
    "q8_k_xl": "q8_0",
}  # fmt: skip


def _known() -> dict[str, Format]:
    table = {known.word: known for known in _PLAIN}
    for word, bits in _GGUF_FILES.items():
        table[word] = Format(word, bits, "GGUF file: bits per weight of an 8B model, all its tensors together")
        table[f"ud-{word}"] = Format(f"ud-{word}", bits, f"Unsloth's dynamic mix, counted as {word}")
    for word, near in _DYNAMIC_XL.items():
        table[f"ud-{word}"] = Format(f"ud-{word}", _GGUF_FILES[near], f"Unsloth's dynamic mix, counted as {near}")
    for word, (size, weights) in _GGML_TYPES.items():
        table[word] = Format(word, size * 8 / weights, f"GGML tensor: {size} bytes per {weights} weights")
    return table


FORMATS = _known()


def _grouped(word: str, match: re.Match[str]) -> Format:
    width, group, plain = int(match[1]), int(match[2]), match[3] is not None
    zero = 0 if plain else width
    kept = "a 2-byte scale" + ("" if plain else f" and a {width}-bit zero point")
    return Format(word, width + (16 + zero) / group, f"{width} bits and {kept} per {group}")


def _blocked(word: str, match: re.Match[str]) -> Format:
    side = int(match[1])
    return Format(word, 8 + 32 / side**2, f"one byte and an fp32 scale per block of {side} x {side}")


def _rowed(word: str, match: re.Match[str]) -> Format:
    return Format(word, 8 + 32 / int(match[1]), f"one byte and an fp32 scale per {match[1]}")


def _trellis(word: str, match: re.Match[str]) -> Format:
    return Format(word, float(match[1]), "ExLlama: bits per weight as the quantizer was told, its own scales included")


def _stated(word: str, match: re.Match[str]) -> Format:
    return Format(word, float(match[1]), "as the profile states it, scales and zero points included")


_NUMBER = r"(\d{1,2}(?:\.\d{1,4})?)"
# Words that carry their numbers, an example of each for refusals, and what they make.
_FAMILIES: tuple[tuple[str, str, Callable[[str, re.Match[str]], Format]], ...] = (
    (r"int([2-8])-g(16|32|64|128|256|512|1024)(-sym)?", "int4-g128", _grouped),
    (r"fp8-b(16|32|64|128|256)", "fp8-b128", _blocked),
    (r"fp8-g(16|32|64|128|256)", "fp8-g128", _rowed),
    (rf"exl[23]-{_NUMBER}", "exl3-3.5", _trellis),
    (rf"bits-{_NUMBER}", "bits-4.25", _stated),
)
PATTERN = "^(" + "|".join(pattern for pattern, _, _ in _FAMILIES) + ")$"
_LEAST, _MOST = 1.0, 32.0  # bits
# What people say for a format, and the word here.
_SAID = {
    "awq": "int4-g128", "gptq": "int4-g128", "autoround": "int4-g128", "auto-round": "int4-g128", "w4a16": "int4-g128",
    "int4-asym": "int4-g128", "int4-sym": "int4-g128-sym", "w8a16": "int8", "w8a8": "int8", "fp4": "nvfp4 or mxfp4",
    "float4": "nvfp4 or mxfp4", "4bit": "int4-g128 or nf4", "8bit": "int8", "bfloat16": "bf16", "float16": "fp16",
    "half": "fp16", "float32": "fp32", "float8": "fp8", "fp8_e4m3": "fp8", "fp8-block": "fp8-b128", "bnb": "nf4",
    "exl2": "exl2-4.0", "exl3": "exl3-4.0", "gguf": "q4_k_m or another of its types", "modelopt": "nvfp4 or fp8",
}  # fmt: skip

PACKINGS = {
    "modelopt": "NVIDIA's ModelOpt: NVFP4, FP8 or both",
    "compressed-tensors": "llm-compressor: NVFP4, FP8, INT4, INT8",
    "fp8": "the publisher's own FP8, per tensor or in blocks (quant_method fp8)",
    "bf16": "not quantized",
    "gguf": "llama.cpp's files",
    "awq": "AutoAWQ: INT4 with zero points",
    "gptq": "GPTQModel and AutoGPTQ: INT2 to INT8",
    "auto-round": "Intel's AutoRound: INT2 to INT8",
    "mxfp4": "experts in MXFP4 as OpenAI publishes them (quant_method mxfp4)",
    "exl2": "ExLlamaV2",
    "exl3": "ExLlamaV3",
    "bitsandbytes": "NF4 or INT8",
    "torchao": "PyTorch's own quantizer",
    "quark": "AMD's Quark",
    "hqq": "HQQ",
}
_PACKED = {
    "autoround": "auto-round", "auto_round": "auto-round", "gptqmodel": "gptq", "autogptq": "gptq", "autoawq": "awq",
    "awq_marlin": "awq", "gptq_marlin": "gptq", "modelopt_fp4": "modelopt", "nvfp4": "modelopt or compressed-tensors",
    "modelopt_fp8": "modelopt", "modelopt_mixed": "modelopt", "llm-compressor": "compressed-tensors",
    "bnb": "bitsandbytes", "compressed_tensors": "compressed-tensors", "none": "bf16", "fp16": "bf16",
}  # fmt: skip


@lru_cache(maxsize=512)
def of(word: str) -> Format:
    """The format behind a word; ValueError names the near ones."""
    if word in FORMATS:
        return FORMATS[word]
    for pattern, _, made in _FAMILIES:
        if match := re.fullmatch(pattern, word):
            found = made(word, match)
            if _LEAST <= found.bits <= _MOST:
                return found
            raise ValueError(f"'{word}' says {found.bits:g} bits per weight; expected {_LEAST:g} to {_MOST:g}")
    examples = [example for _, example, _ in _FAMILIES]
    near = _near(word, _SAID, [*FORMATS, *examples])
    rest = "bits-4.25 states the bits per weight of any other, scales and zero points included"
    raise ValueError(f"'{word}' is no format known here; write {near or 'one as ' + ', '.join(examples)}; {rest}")


def weight(word: str) -> float:
    """Bytes per parameter."""
    return of(word).bytes


def format_word(word: str) -> str:
    of(word)
    return word


def packing_word(word: str) -> str:
    if word in PACKINGS:
        return word
    near = _near(word, _PACKED, PACKINGS)
    raise ValueError(
        f"'{word}' packs no checkpoint known here; write {near or 'one of ' + ', '.join(PACKINGS)} "
        "(quantization_config.quant_method in config.json; bf16 where there is none)"
    )


def _near(word: str, said: dict[str, str], known: Iterable[str]) -> str:
    plain = word.lower()
    if plain in said:
        return said[plain]
    known = list(known)
    for candidate in (plain, plain.replace("-", "_"), plain.replace("_", "-")):
        if candidate in known or any(re.fullmatch(pattern, candidate) for pattern, _, _ in _FAMILIES):
            return candidate
    return " or ".join(get_close_matches(plain, known, n=3, cutoff=0.6))
