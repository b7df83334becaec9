"""Garbage across the requests of one bench level.

A collapsed model is fast and even: every request runs to the token limit at the same speed to the second
decimal, and none has an answer in it. Requests that merely share the limit are no such sign: their speeds
differ, or their texts do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sparkloom.base import json_text
from sparkloom.base.errors import InputError
from sparkloom.judge.beyond import doubt, impossible
from sparkloom.measure.guard.stream import Guard

TEXTS = ("text", "text_tail")
TAIL = 400  # characters of an answer's end that bench keeps
SAID = 24  # characters and tokens below which two different questions may well have one answer


def judge_batch(
    requests: Sequence[Mapping[str, Any]],
    *,
    bound_tok_s: float | None = None,
    ceiling_tok_s: float | None = None,
    concurrency: int | None = None,
    prompts_distinct: bool | int | None = None,
) -> dict[str, Any]:
    """`bound_tok_s`: what nothing that computes the model beats at this concurrency; `ceiling_tok_s`: what is expected
    at best, and above it the verdict only doubts. Unknown: how many requests ran at once (all), and how many
    prompts there were (each request's `prompt` tells, where it is there)."""
    done = [request for request in requests if not request.get("error")]
    distinct = _distinct(done, prompts_distinct)
    speed = _speed(done, concurrency)
    symptom = (
        _texts(done)
        or _echoed(done, distinct)
        or _uniform(done, distinct)
        or _silent(done)
        or _impossible(speed, bound_tok_s)
    )
    kind, why = symptom or (None, None)
    shown = {"verdict": "garbage" if kind else "ok", "kind": kind, "at_chunk": None, "at_char": None}
    told = {"why": why, "doubt": "" if kind else doubt(speed, ceiling_tok_s)}
    return shown | {key: text for key, text in told.items() if text}


def _distinct(requests: Sequence[Mapping[str, Any]], told: bool | int | None) -> int | None:
    """How many different prompts the requests had; None where nobody says."""
    if told is True:
        return len(requests)
    if told is not None:
        return max(1, min(int(told), len(requests)))
    prompts = {str(request["prompt"]) for request in requests if request.get("prompt") is not None}
    return len(prompts) or None


def _echoed(requests: Sequence[Mapping[str, Any]], distinct: int | None) -> tuple[str, str] | None:
    """One text for different prompts: nobody read the prompts."""
    if distinct is None or distinct < 2:
        return None
    groups: dict[tuple[str, float], list[Mapping[str, Any]]] = {}
    for request in sorted(requests, key=_tokens):
        text, tokens = " ".join(_text(request).split()), _tokens(request)
        if len(text) >= SAID or (text and tokens >= SAID):
            groups.setdefault((text, _as_long(groups, text, tokens)), []).append(request)
    most = max(groups.values(), key=len, default=[])
    named = {str(request["prompt"]) for request in most if request.get("prompt") is not None}
    prompts = len(named) or len(most) - (len(requests) - distinct)  # so many at least
    if prompts < 2 or prompts * 2 < distinct:
        return None
    why = f"{len(most)} of {len(requests)} requests got one text, for at least {prompts} different prompts"
    return "same-text", why


def _as_long(groups: Mapping[tuple[str, float], Any], text: str, tokens: float) -> float:
    """Answers may end alike, in a closing or a list of sources: of an end that is kept alone, a tenth is the limit."""
    if len(text) < 0.9 * TAIL:  # all of it
        return 0
    return next((known for end, known in groups if end == text and tokens <= 1.1 * known), tokens)


def _texts(requests: Sequence[Mapping[str, Any]]) -> tuple[str, str] | None:
    """Half of the requests and more say garbage by themselves."""
    bad = [kind for kind in map(_text_kind, requests) if kind]
    if not bad or len(bad) * 2 < len(requests):
        return None
    return bad[0], f"{len(bad)} of {len(requests)} requests are garbage by their text"


def _text_kind(request: Mapping[str, Any]) -> str | None:
    verdict = request.get("guard")
    if isinstance(verdict, Mapping) and verdict.get("verdict") == "garbage":
        return str(verdict.get("kind") or "garbage")
    text = _text(request)
    if not text:
        return None
    if not isinstance(verdict, Mapping):  # nobody has read the whole of it
        guard = Guard()
        guard.feed(text)
        judged = guard.finish()
        if not judged.ok:
            return judged.kind
    return "loop" if _tail_loops(text) else None


def _tail_loops(text: str) -> bool:
    """A tail is short, so less of a loop must do: all of it, from a unit that fits in eight times."""
    if len(text) < 24:
        return False
    return any(text[period:] == text[:-period] for period in range(1, len(text) // 8 + 1))


def _uniform(requests: Sequence[Mapping[str, Any]], distinct: int | None) -> tuple[str, str] | None:
    """The fingerprint: same speed, same length, all cut off, and no answer that says otherwise."""
    if len(requests) < 2 or any(request.get("finish_reason") not in ("length", None) for request in requests):
        return None
    speeds = [number(request.get("tokens_per_sec")) for request in requests]
    lengths = {request.get("output_tokens") for request in requests}
    if any(speed is None for speed in speeds) or len(lengths) != 1 or lengths == {None}:
        return None
    if len({round(speed, 2) for speed in speeds if speed is not None}) != 1 or _answers(requests, distinct):
        return None
    why = (
        f"all {len(requests)} requests ran at {speeds[0]:.2f} tok/s to {next(iter(lengths))} tokens, "
        "were cut off there and hold no answer"
    )
    return "uniform-batch", why


def _answers(requests: Sequence[Mapping[str, Any]], distinct: int | None) -> bool:
    """Do the texts speak for themselves: there, and different from each other where the prompts were?"""
    texts = [text for text in map(_text, requests) if text]
    return bool(texts) and (distinct == 1 or len(set(texts)) > len(texts) / 2)


def _silent(requests: Sequence[Mapping[str, Any]]) -> tuple[str, str] | None:
    """Tokens were counted, and the recorded texts are empty or blank."""
    told = [request for request in requests if any(isinstance(request.get(key), str) for key in TEXTS)]
    blank = [request for request in told if not _text(request) and (number(request.get("output_tokens")) or 0) >= 64]
    if len(requests) < 1 or not blank or len(blank) * 2 < len(requests):
        return None
    return "no-text", f"{len(blank)} of {len(requests)} requests counted tokens and hold no text"


def _speed(requests: Sequence[Mapping[str, Any]], concurrency: int | None) -> float:
    """Tokens a second of a full round: the mean request, so many times."""
    speeds = [speed for request in requests if (speed := number(request.get("tokens_per_sec")))]
    return sum(speeds) / len(speeds) * min(len(speeds), concurrency or len(speeds)) if speeds else 0.0


def _impossible(speed: float, bound: float | None) -> tuple[str, str] | None:
    if bound is None or not impossible(speed, bound):
        return None
    return "impossible-speed", f"{speed:.1f} tok/s in all; memory bandwidth allows {bound:.1f}"


def _text(request: Mapping[str, Any]) -> str:
    return next((value.strip() for key in TEXTS if isinstance(value := request.get(key), str) and value.strip()), "")


def _tokens(request: Mapping[str, Any]) -> float:
    return number(request.get("output_tokens")) or 0.0


def number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


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
        bound_tok_s=number(_given(told, "bound_tok_s", path, _is_speed, "tokens a second, as 147.0")),
        ceiling_tok_s=number(_given(told, "ceiling_tok_s", path, _is_speed, "tokens a second, as 147.0")),
        concurrency=_given(told, "concurrency", path, _is_count, "a whole number above 0"),
        prompts_distinct=_given(told, "prompts_distinct", path, _is_prompts, DISTINCT),
    )
    return verdict if verdict["kind"] else {**verdict, "looked_at": f"{len(requests):,} requests"}


def _given(told: Mapping[str, Any], key: str, path: Path, fits: Callable[[Any], bool], expected: str) -> Any:
    value = told.get(key)
    if value is None or fits(value):
        return value
    raise InputError.single(str(path), f"{key} is {value!r}; expected {expected}", rule="wrong-type")


def _is_speed(value: Any) -> bool:
    return (found := number(value)) is not None and found > 0


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _is_prompts(value: Any) -> bool:
    return isinstance(value, int) and value >= 0  # a boolean is one of these
