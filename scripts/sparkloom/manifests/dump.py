"""Objects as YAML text, the same bytes for the same objects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import yaml

_Base: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


class _Dumper(_Base):  # type: ignore[misc]
    """Long texts as blocks, and no anchors: what objects share in memory is written out in each."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: Any, value: str) -> Any:
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)


_Dumper.add_representer(str, _text)


def to_yaml(objects: Iterable[Mapping[str, Any]]) -> str:
    text: str = yaml.dump_all(objects, Dumper=_Dumper, sort_keys=False, explicit_start=True, width=4096)
    return text
