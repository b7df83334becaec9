"""Garbage across the requests of one bench level.

A collapsed model is fast and even: every request runs to the token limit at the same speed to the second
decimal, and none has an answer in it. Requests that merely share the limit are no such sign: their speeds
differ, or their texts do.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sparkloom.base.errors import InputError
from sparkloom.measure.guard.stream import Guard

TEXTS = ("text", "text_tail", "content", "output_text", "tail")
EXPECTED = 'expected {"requests": [{"tokens_per_sec": 5.3, "output_tokens": 3072, "finish_reason": "length", ...}]}'


def judge_batch_file(path: Path) -> dict[str, Any]:
    """Verdict over a file with `requests`, or with one bench level of them."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError.single(str(path), f"cannot be read: {error.strerror}; {EXPECTED}", rule="unreadable") from None
    except UnicodeDecodeError as error:
        raise InputError.single(str(path), f"is no UTF-8 text: {error}", rule="unreadable") from None
    except json.JSONDecodeError as error:
        message = f"not valid JSON ({error.msg}); {EXPECTED}"
        raise InputError.single(str(path), message, line=error.lineno, column=error.colno, rule="bad-json") from None
    except (ValueError, RecursionError):
        message = f"not valid JSON (nested too deep or an endless number); {EXPECTED}"
        raise InputError.single(str(path), message, rule="bad-json") from None
    requests = data.get("requests") if isinstance(data, dict) else data
    if not isinstance(requests, list) or not all(isinstance(request, dict) for request in requests):
        raise InputError.single(str(path), f"no list of requests; {EXPECTED}", rule="wrong-type")
    if not requests:
        raise InputError.single(str(path), f"the list of requests is empty; {EXPECTED}", rule="empty-input")
    bound = data.get("bound_tok_s") if isinstance(data, dict) else None
    return judge_batch(requests, bound_tok_s=_number(bound))


def judge_batch(requests: Sequence[Mapping[str, Any]], *, bound_tok_s: float | None = None) -> dict[str, Any]:
    """`bound_tok_s`: what the machine could reach at best at this concurrency, where it is known."""
    done = [request for request in requests if not request.get("error")]
    symptom = _texts(done) or _uniform(done) or _silent(done) or _impossible(done, bound_tok_s)
    kind, why = symptom or (None, None)
    shown = {"verdict": "garbage" if kind else "ok", "kind": kind, "at_chunk": None, "at_char": None}
    return shown | ({"why": why} if why else {})


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


def _uniform(requests: Sequence[Mapping[str, Any]]) -> tuple[str, str] | None:
    """The fingerprint: same speed, same length, all cut off, and no answer that says otherwise."""
    if len(requests) < 2 or any(request.get("finish_reason") not in ("length", None) for request in requests):
        return None
    speeds = [_number(request.get("tokens_per_sec")) for request in requests]
    lengths = {request.get("output_tokens") for request in requests}
    if any(speed is None for speed in speeds) or len(lengths) != 1 or lengths == {None}:
        return None
    if len({round(speed, 2) for speed in speeds if speed is not None}) != 1 or _answers(requests):
        return None
    why = (
        f"all {len(requests)} requests ran at {speeds[0]:.2f} tok/s to {next(iter(lengths))} tokens, "
        "were cut off there and hold no answer"
    )
    return "uniform-batch", why


def _answers(requests: Sequence[Mapping[str, Any]]) -> bool:
    """Do the texts speak for themselves: there, and different from each other?"""
    content = [_number(request.get(key)) for request in requests for key in ("content_tokens", "content_tokens_est")]
    texts = [text for text in map(_text, requests) if text]
    if texts:
        return len(set(texts)) > len(texts) / 2
    return any(content)


def _silent(requests: Sequence[Mapping[str, Any]]) -> tuple[str, str] | None:
    """Tokens were counted, and the recorded texts are empty or blank."""
    told = [request for request in requests if any(isinstance(request.get(key), str) for key in TEXTS)]
    blank = [request for request in told if not _text(request) and (_number(request.get("output_tokens")) or 0) >= 64]
    if len(requests) < 1 or not blank or len(blank) * 2 < len(requests):
        return None
    return "no-text", f"{len(blank)} of {len(requests)} requests counted tokens and hold no text"


def _impossible(requests: Sequence[Mapping[str, Any]], bound: float | None) -> tuple[str, str] | None:
    total = sum(_number(request.get("tokens_per_sec")) or 0.0 for request in requests)
    if bound is None or bound <= 0 or total <= bound * 1.02:  # the bound's own error is below two per cent
        return None
    return "impossible-speed", f"{total:.1f} tok/s in all; memory bandwidth allows {bound:.1f}"


def _text(request: Mapping[str, Any]) -> str:
    return next((value.strip() for key in TEXTS if isinstance(value := request.get(key), str) and value.strip()), "")


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
