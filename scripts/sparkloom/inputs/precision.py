"""What a parameter weighs, by the word for the format it is stored in; and who packs checkpoints that way.

Bits per weight count everything that a format stores for its weights: scales, zero points, codebooks by block. A word
that is not known is refused with the near ones, so that a new format is stated (`bits-4.25`) and not guessed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path
from typing import Any

from sparkloom.base import document

_READ: dict[str, Any] = document.own(Path(__file__).with_name("formats.yml").read_text())
PACKINGS: dict[str, str] = _READ["packings"]
NAMES: list[dict[str, Any]] = _READ["names"]  # what an ending of a model's name says of its packing
GUESSED = "packing and precision by the name only"  # in the source of such facts
BY_NAME = "precision and size are by the name alone, not this checkpoint's own"


def _known() -> dict[str, float]:
    """Bits per weight by word; one of Unsloth's dynamic mixes counts as the plain file that it is near."""
    files: dict[str, float] = _READ["gguf_files"]
    table = {word: float(bits) for word, (bits, _) in _READ["plain"].items()}
    table |= files
    table |= {f"ud-{word}": bits for word, bits in files.items()}
    table |= {f"ud-{word}": files[near] for word, near in _READ["dynamic_xl"].items()}
    return table | {word: size * 8 / weights for word, (size, weights) in _READ["ggml_types"].items()}


FORMATS = _known()


def _grouped(match: re.Match[str]) -> float:
    """A 2-byte scale per group, and a zero point as wide as a weight where there is one."""
    width, group = int(match[1]), int(match[2])
    return width + (16 + (0 if match[3] else width)) / group


_NUMBER = r"(\d{1,2}(?:\.\d{1,4})?)"
# Words that carry their numbers, an example of each for refusals, and the bits per weight that they mean.
_FAMILIES: tuple[tuple[str, str, Callable[[re.Match[str]], float]], ...] = (
    (r"int([2-8])-g(16|32|64|128|256|512|1024)(-sym)?", "int4-g128", _grouped),
    (r"fp8-b(16|32|64|128|256)", "fp8-b128", lambda block: 8 + 32 / int(block[1]) ** 2),  # an fp32 scale per block
    (r"fp8-g(16|32|64|128|256)", "fp8-g128", lambda group: 8 + 32 / int(group[1])),
    (rf"exl[23]-{_NUMBER}", "exl3-3.5", lambda told: float(told[1])),  # ExLlama's own scales are in it
    (rf"bits-{_NUMBER}", "bits-4.25", lambda stated: float(stated[1])),
)
PATTERN = "^(" + "|".join(pattern for pattern, _, _ in _FAMILIES) + ")$"
_LEAST, _MOST = 1.0, 32.0  # bits


@lru_cache(maxsize=512)
def bits(word: str) -> float:
    """Per weight, scales and zero points included; ValueError names the words that are near."""
    if word in FORMATS:
        return FORMATS[word]
    for pattern, _, meant in _FAMILIES:
        if match := re.fullmatch(pattern, word):
            if _LEAST <= (found := meant(match)) <= _MOST:
                return found
            raise ValueError(f"'{word}' says {found:g} bits per weight; expected {_LEAST:g} to {_MOST:g}")
    examples = [example for _, example, _ in _FAMILIES]
    near = _near(word, _READ["said"], [*FORMATS, *examples])
    rest = "bits-4.25 states the bits per weight of any other, scales and zero points included"
    raise ValueError(f"'{word}' is no format known here; write {near or 'one as ' + ', '.join(examples)}; {rest}")


def weight(word: str) -> float:
    """Bytes per parameter."""
    return bits(word) / 8


def format_word(word: str) -> str:
    bits(word)
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
