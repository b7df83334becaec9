"""A draft as a file: YAML as people write it here, a comment for each fact's source, and what is not known on top."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from sparkloom.judge.drafting import likeness
from sparkloom.judge.drafting.draft import Draft

WIDTH = 118
HEAD = "# yaml-language-server: $schema=schema.json"
FOLDED = ("source", "claim", "summary")
OPEN = ("", "model", "engine", "launch", "requests")  # mappings that get a line for each key


def of(made: Draft) -> str:
    lines = [HEAD]
    if made.unknown:
        lines.append("# Not known, and to be settled before this is trusted:")
        for text in made.unknown:
            lines += _comment(f"- {text}", "", "  ")
    if made.near:
        lines.append("# Measured nearest to it:")
        for near in made.near:
            lines += _comment(f"- {likeness.in_words(near)}", "", "  ")
    lines += _mapping("", made.data, made.sources, 0)
    return "\n".join(lines) + "\n"


def _mapping(path: str, data: Mapping[str, Any], sources: Mapping[str, str], depth: int) -> Iterator[str]:
    pad, before = "  " * depth, ""
    for key, value in data.items():
        inner = f"{path}.{key}" if path else key
        if depth == 0 and key != "summary":
            yield ""
        if inner in sources and (said := sources[inner]) != before:  # the same words stand once over several lines
            yield from _comment(said, pad)
        before = sources.get(inner, "")
        if isinstance(value, Mapping) and inner in OPEN:
            yield f"{pad}{key}:"
            yield from _mapping(inner, value, sources, depth + 1)
        elif key == "evidence":
            yield f"{pad}{key}:"
            for entry in value:
                yield from _entry(entry)
        elif key in FOLDED and isinstance(value, str):
            yield from _folded(f"{pad}{key}:", value, pad)
        else:
            yield from _line(f"{pad}{key}: ", value, pad)


def _entry(entry: Mapping[str, Any]) -> Iterator[str]:
    mark = "  - "
    for key, value in entry.items():
        lines = list(
            _folded(f"{mark}{key}:", value, "    ") if key in FOLDED else _line(f"{mark}{key}: ", value, "    ")
        )
        yield from lines
        mark = "    "


def _line(begin: str, value: Any, pad: str) -> Iterator[str]:
    text = begin + flow(value)
    if len(text) <= WIDTH or not isinstance(value, Mapping):
        yield text
        return
    yield begin.rstrip()
    for key, part in value.items():
        yield from _line(f"{pad}  {_scalar(key)}: ", part, f"{pad}  ")


def _folded(begin: str, text: str, pad: str) -> Iterator[str]:
    one = f"{begin} {_scalar(text)}"
    if len(one) <= WIDTH:
        yield one
        return
    yield f"{begin} >-"
    yield from textwrap.wrap(text, WIDTH - len(pad) - 2, initial_indent=f"{pad}  ", subsequent_indent=f"{pad}  ",
                             break_long_words=False, break_on_hyphens=False)  # fmt: skip


def _comment(text: str, pad: str, hang: str = "") -> list[str]:
    return textwrap.wrap(
        text, WIDTH - len(pad), initial_indent=f"{pad}# ", subsequent_indent=f"{pad}# {hang}", break_long_words=False,
        break_on_hyphens=False,
    )  # fmt: skip


def flow(value: Any) -> str:
    """`{a: 1, b: [x, "2"]}`"""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_scalar(key)}: {flow(part)}" for key, part in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(flow(part) for part in value) + "]"
    return _scalar(value)


def _scalar(value: Any) -> str:
    """A word as YAML needs it; inside braces too."""
    text: str = yaml.safe_dump([value], default_flow_style=True, width=10_000, allow_unicode=True).strip()[1:-1]
    return text.replace("'", '"') if text.startswith("'") and '"' not in text and "''" not in text else text
