"""What an engine's own parser does beyond argparse, and the words that catalogs use for the types of flags."""

from __future__ import annotations

import difflib
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

# What the parser lets through and a person should still hear about.
ACCEPTED_KINDS = frozenset({"abbreviated", "deprecated", "unregistered", "missing-model"})
_SIZE = re.compile(r"(\d+(?:\.\d+)?)([A-Za-z]+)")


@dataclass(frozen=True, slots=True)
class FlagProblem:
    """One thing about a command line. `rejected`: the engine's own parser would refuse to start."""

    flag: str
    message: str
    kind: str

    @property
    def rejected(self) -> bool:
        return self.kind not in ACCEPTED_KINDS


class FlagError(ValueError):
    def __init__(self, problem: FlagProblem) -> None:
        self.problem = problem
        super().__init__(problem.message)


Normalised = tuple[list[str], list[FlagProblem]]


def _as_it_stands(words: list[str]) -> Normalised:
    return words, []


@dataclass(frozen=True, eq=False)  # one object per engine: compared by identity
class Dialect:
    prefixes: tuple[str, ...] = ()  # of the engine's own environment variables
    suffixes: Mapping[str, int] = field(default_factory=dict)  # behind a size, as in 8K
    # A LoRA adapter as JSON: names that it must have, those that it may have (None: any); and is a bare path enough?
    lora_must: frozenset[str] = frozenset()
    lora_may: frozenset[str] | None = None
    lora_path: bool = True
    normalise: Callable[[list[str]], Normalised] = _as_it_stands  # the words before argparse sees them


PLAIN = Dialect()


def convert(word: str, text: str, dialect: Dialect) -> object:
    """The value that the engine would make of `text`. ValueError says what was expected."""
    if word == "lora":
        return _lora(text, dialect)
    if word in ("size", "size_or_auto"):
        if word == "size_or_auto" and text.strip().lower() in ("auto", "-1"):
            return -1
        return _size(text, dialect.suffixes)
    return _CONVERTERS[word](text)


def _size(text: str, suffixes: Mapping[str, int]) -> int:
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        return _int(text)
    number, suffix = match.groups()
    if suffix not in suffixes:
        raise ValueError(f"a whole number, with one of {' '.join(suffixes)} behind it if you like")
    if "." in number and suffixes[suffix] % 1000:
        raise ValueError(f"a whole number before {suffix}")
    return int(Decimal(number) * suffixes[suffix])


def _int(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError("a whole number") from None


def _float(text: str) -> float:
    """The engines take 'nan' and 'inf' too; no setting of theirs means anything by it."""
    try:
        value = float(text)
    except ValueError:
        raise ValueError("a number") from None
    if not math.isfinite(value):
        raise ValueError("a finite number")
    return value


def parse_json(text: str) -> object:
    """ValueError for whatever is no JSON, nesting without end included."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"valid JSON ({error})") from None


def _json_object(text: str) -> object:
    value = parse_json(text)
    if not isinstance(value, dict):
        raise ValueError("a JSON object")
    return value


def _str_or_json(text: str) -> object:
    return parse_json(text) if re.fullmatch(r"(?s)\s*{.*}\s*", text) else text


def check_keys(value: object, known: Sequence[str]) -> None:
    """`known` names a JSON object's keys; `decode.backend` is a key of the object under `decode`."""
    for key, inner in value.items() if isinstance(value, dict) else ():
        below = [name.split(".", 1)[1] for name in known if name.startswith(f"{key}.")]
        if key not in known and not below:
            close = difflib.get_close_matches(str(key), known, n=1)
            raise ValueError(f"no key '{key}'" + (f" (did you mean {close[0]}?)" if close else ""))
        if below:
            if not isinstance(inner, dict):
                raise ValueError(f"a JSON object under '{key}'")
            check_keys(inner, below)


def _lora(text: str, dialect: Dialect) -> object:
    """name=path or JSON; for some engines a path alone."""
    is_json = re.fullmatch(r"(?s)\s*{.*}\s*", text) is not None
    plain = not is_json if dialect.lora_path else "=" in text and "," not in text
    if plain or not text:
        return text
    value = _json_object(text)
    keys, may = set(value) if isinstance(value, dict) else set(), dialect.lora_may
    if dialect.lora_must - keys or (may is not None and keys - may):
        raise ValueError(f"a JSON object with {' and '.join(sorted(dialect.lora_must))}")
    return value


def _folded(text: str) -> str:
    return text.lower().replace("-", "_")


def _list(text: str) -> list[str]:
    return [part.strip() for part in text.split(",")]


_CONVERTERS: Mapping[str, Callable[[str], object]] = {
    "str": str, "int": _int, "float": _float, "json": parse_json, "json_object": _json_object,
    "str_or_json": _str_or_json, "folded": _folded, "list": _list,
}  # fmt: skip
TYPES = frozenset({*_CONVERTERS, "lora", "size", "size_or_auto"})
