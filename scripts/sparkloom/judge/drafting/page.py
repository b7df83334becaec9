"""A draft as a file: a profile's text, a comment for each fact's source, and what is not known on top."""

from __future__ import annotations

from collections.abc import Iterator

from sparkloom.base import document
from sparkloom.inputs import profile as profiles
from sparkloom.judge import assumptions
from sparkloom.judge.drafting import likeness
from sparkloom.judge.drafting.draft import Draft

DEPTH = 2  # of the keys that have a source: model.layers
HEAD = "# yaml-language-server: $schema=schema.json"


def of(made: Draft) -> str:
    lines = [HEAD, *assumptions.comments(made.unknown)]
    if made.near:
        lines.append("# Measured nearest to it:")
        for near in made.near:
            lines += assumptions.comment(f"- {likeness.in_words(near)}", "", "  ")
    return "\n".join([*lines, *_with_sources(made)]) + "\n"


def _with_sources(made: Draft) -> Iterator[str]:
    """Each key below the words that say it; the same words stand once over several keys."""
    text, before = profiles.written(made.data), ""
    keys: dict[int, str] = {}
    for loc, (number, _) in document.parse(text, made.name).marks.items():
        if len(loc) <= DEPTH:
            keys.setdefault(number, ".".join(map(str, loc)))
    for number, line in enumerate(text.splitlines(), 1):
        said = made.sources.get(keys[number], "") if number in keys else before
        if said and said != before:
            yield from assumptions.comment(said, line[: len(line) - len(line.lstrip())])
        before = said if line else ""
        yield line
