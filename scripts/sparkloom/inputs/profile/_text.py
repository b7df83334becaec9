"""A profile as the text of its file: sections in the order that people read them, small things on one line."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

import yaml

from sparkloom.base.document import Dumper

ORDER = ("extends", "summary", "model", "engine", "launch", "env", "requests", "evidence")
WIDTH = 100  # behind which PyYAML breaks a line at the next space


def written(data: Mapping[str, Any]) -> str:
    """Each section a block, a blank line between two; what is small inside of one stays in its line."""
    parts = [{key: data[key]} for key in (*ORDER, *(k for k in data if k not in ORDER)) if key in data]
    return "\n".join(block(part) for part in parts)


def block(data: Mapping[str, Any], depth: int = 2) -> str:
    """YAML whose first `depth` levels are written out line by line."""
    node = Dumper(io.StringIO(), sort_keys=False, default_flow_style=None).represent_data(dict(data))
    _opened(node, depth)
    return str(yaml.serialize(node, Dumper=Dumper, allow_unicode=True, width=WIDTH))


def flow(data: Any) -> str:
    """In one line, as inside of braces: `{a: 1, b: [x, '2']}`."""
    return yaml.safe_dump([data], default_flow_style=True, sort_keys=False, width=10_000, allow_unicode=True)[1:-2]


def _opened(node: yaml.Node, depth: int) -> None:
    if depth and isinstance(node, yaml.MappingNode):
        node.flow_style = False
        for _, value in node.value:
            _opened(value, depth - 1)
    elif depth and isinstance(node, yaml.SequenceNode):
        node.flow_style = all(isinstance(item, yaml.ScalarNode) for item in node.value)
        for item in node.value:
            _opened(item, 1)
