"""Has every node that will serve the whole, verified weights?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sparkloom.site.checks import Row

FETCH = "playbooks/models.yml brings and verifies it"


def judge(nodes: Sequence[str], found: Mapping[str, Mapping[str, Any]]) -> list[Row]:
    rows: list[Row] = []
    for node in nodes:
        answers = found.get(node, {}).get("answer")
        if answers is None:
            said = str(found.get(node, {}).get("msg") or "no store program of this version")
            rows.append(Row(node, "weights", said, "a store that was filled and verified", FETCH))
            continue
        for answer in answers:
            rows += [Row(node, str(answer["id"]), text, "whole and verified", FETCH) for text in answer["problems"]]
    return rows
