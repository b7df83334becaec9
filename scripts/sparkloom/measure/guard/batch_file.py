"""A recorded level from a file: ours, one level of it, or anybody's list of requests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from sparkloom.base import json_text
from sparkloom.base.errors import InputError
from sparkloom.measure.guard.batch import judge_batch, number

EXPECTED = (
    'expected {"requests": [{"tokens_per_sec": 5.3, "output_tokens": 3072, "finish_reason": "length", ...}]}, '
    "or a result of `sparkloom bench`"
)
DISTINCT = "true, false, or how many different prompts there were"


def judge_batch_file(path: Path, group: str | None = None) -> dict[str, Any]:
    """Verdict over a level, or over the worst one of a whole run; with a group, only if it was measured of that one."""
    data = json_text.load(path, EXPECTED)
    measured = _group(data)
    if group and measured != group:
        found = f"was measured of {measured}" if measured else "does not say of which group it was measured"
        raise InputError.single(str(path), f"{found}; expected {group}, as --group says", rule="another-group")
    judged = [_judged(level, path) for level in _levels(data, path)]
    worst = next((verdict for verdict in judged if verdict["verdict"] != "ok"), judged[0])
    return {**worst, "group": measured} if measured else worst


def _group(data: Any) -> str:
    """Of a result of `sparkloom bench`, measured at a site that serves several."""
    origin = data.get("provenance") if isinstance(data, dict) else None
    return str(origin.get("group") or "") if isinstance(origin, dict) else ""


def _levels(data: Any, path: Path) -> list[Any]:
    levels = data.get("levels") if isinstance(data, dict) else None
    if levels is None:
        return [data]
    if not isinstance(levels, list) or not levels:
        raise InputError.single(str(path), f"levels: no list with a level in it; {EXPECTED}", rule="wrong-type")
    return levels


def _judged(level: Any, path: Path) -> dict[str, Any]:
    told = level if isinstance(level, dict) else {}
    lists = [told.get("requests"), told.get("per_request"), level]
    requests = next((found for found in lists if isinstance(found, list)), None)
    if requests is None or not all(isinstance(request, dict) for request in requests):
        raise InputError.single(str(path), f"no list of requests; {EXPECTED}", rule="wrong-type")
    if not requests:
        raise InputError.single(str(path), f"the list of requests is empty; {EXPECTED}", rule="empty-input")
    verdict = judge_batch(
        requests,
        bound_tok_s=number(_given(told, "bound_tok_s", path, _speed, "tokens a second, as 147.0")),
        ceiling_tok_s=number(_given(told, "ceiling_tok_s", path, _speed, "tokens a second, as 147.0")),
        concurrency=_given(told, "concurrency", path, _count, "a whole number above 0"),
        prompts_distinct=_given(told, "prompts_distinct", path, _distinct, DISTINCT),
    )
    return verdict if verdict["kind"] else {**verdict, "looked_at": f"{len(requests):,} requests"}


def _given(told: Mapping[str, Any], key: str, path: Path, fits: Callable[[Any], bool], expected: str) -> Any:
    value = told.get(key)
    if value is None or fits(value):
        return value
    raise InputError.single(str(path), f"{key} is {value!r}; expected {expected}", rule="wrong-type")


def _speed(value: Any) -> bool:
    return (found := number(value)) is not None and found > 0


def _count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _distinct(value: Any) -> bool:
    return isinstance(value, int) and value >= 0  # a boolean is one of these
