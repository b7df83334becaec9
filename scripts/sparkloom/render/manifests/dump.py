"""Objects as YAML text, the same bytes for the same objects.

YAML readers disagree about plain words (`1e5` is text to one and a number to the API server's), so everything but plain
identifiers is quoted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import yaml

_PLAIN = re.compile(r"[A-Za-z_/][A-Za-z0-9_./-]*(?::[A-Za-z0-9_./-]+)*")
_WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null", "nan", "inf"})
_LONGEST = 1 << 30  # characters of a line: none is broken


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc] # libyaml when it is there
    def ignore_aliases(self, data: Any) -> bool:
        return True  # the same mapping twice is written twice


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    """A literal block where that gives back exactly the same text, else one line."""
    if _PLAIN.fullmatch(text) and text.lower() not in _WORDS:
        style = None
    elif text.endswith("\n") and text[-2:-1].strip() and text[0].strip() and text.replace("\n", "").isprintable():
        style = "|"
    else:
        style = "'" if text.isprintable() else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def to_yaml(objects: Iterable[Mapping[str, Any]]) -> str:
    text: str = yaml.dump_all(
        objects, Dumper=_Dumper, sort_keys=False, width=_LONGEST, allow_unicode=True, explicit_start=True
    )
    return text
