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
from pathlib import Path
from typing import Any

from sparkloom.base import document


@dataclass(frozen=True, slots=True)
class Format:
    word: str
    bits: float  # per weight, scales and zero points included
    why: str

    @property
    def bytes(self) -> float:
        return self.bits / 8


_READ: dict[str, Any] = document.own(Path(__file__).with_name("formats.yml").read_text())
PACKINGS: dict[str, str] = _READ["packings"]
NAMES: list[dict[str, Any]] = _READ["names"]  # what an ending of a model's name says of its packing
GUESSED = "packing and precision by the name only"  # in the source of such facts
BY_NAME = "precision and size are by the name alone, not this checkpoint's own"


def _known() -> dict[str, Format]:
    table = {word: Format(word, bits, why) for word, (bits, why) in _READ["plain"].items()}
    for word, bits in _READ["gguf_files"].items():
        table[word] = Format(word, bits, "GGUF file: bits per weight of an 8B model, all its tensors together")
        table[f"ud-{word}"] = Format(f"ud-{word}", bits, f"Unsloth's dynamic mix, counted as {word}")
    for word, near in _READ["dynamic_xl"].items():
        bits = _READ["gguf_files"][near]
        table[f"ud-{word}"] = Format(f"ud-{word}", bits, f"Unsloth's dynamic mix, counted as {near}")
    for word, (size, weights) in _READ["ggml_types"].items():
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
    near = _near(word, _READ["said"], [*FORMATS, *examples])
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
    near = _near(word, _READ["packed"], PACKINGS)
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
