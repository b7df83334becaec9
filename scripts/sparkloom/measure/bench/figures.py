"""The figures of a request and of a level, each with its formula. docs/bench.md explains them to a reader."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise
from typing import Any

from sparkloom.measure.bench.request import Request
from sparkloom.measure.bench.tools import judge
from sparkloom.measure.guard.batch import judge_batch


def tokens(request: Request, max_tokens: int) -> tuple[int, str]:
    """How many, and who says so: the engine; the limit that it ran into; or only the number of chunks."""
    counted = (request.usage or {}).get("completion_tokens")
    if isinstance(counted, int) and counted > 0:
        return counted, "engine"
    if request.finish == "length":
        return max_tokens, "limit"
    return len(request.times), "chunks"


def prompt_tokens(request: Request) -> int | None:
    """As the engine counted them; what its prefix cache had is among them."""
    counted = (request.usage or {}).get("prompt_tokens")
    return counted if isinstance(counted, int) and counted > 0 else None


def first_tokens(request: Request, total: int) -> float:
    """Tokens in the first chunk: said by the engine, or estimated where chunks hold several.

    A first chunk about as long as the others holds about as many tokens; one of another length has its share of
    the characters. An answer of a thousand tokens has no use for more precision.
    """
    chunks = len(request.times)
    if chunks and request.counted[0] > 0:
        return min(request.counted[0], total)
    if total <= 1.1 * chunks or not chunks:
        return 1
    length = request.sizes[0] / max(sum(request.sizes), 1) * chunks  # of the first chunk, the mean one being 1
    share = total / chunks if 0.6 <= length <= 1.67 else round(length * total / chunks)
    return max(1.0, min(share, total - (chunks - 1)))


def decode(request: Request, total: int) -> float | None:
    """Tokens a second after the first chunk: (N - tokens in the first chunk) / (last arrival - first arrival)."""
    times = request.times
    if len(times) < 2 or times[-1] <= times[0]:
        return None
    return (total - first_tokens(request, total)) / (times[-1] - times[0])


def gaps(request: Request, total: int) -> list[float]:
    """Seconds per token, one for every chunk after the first: the gap before it over the tokens in it."""
    times, counted = request.times, request.counted
    if len(times) < 2:
        return []
    if counted[0] > 0 and counted[-1] > counted[0]:
        spans, at, have = [], times[0], counted[0]
        for when, count in zip(times, counted, strict=True):
            if count > have:
                spans.append((when - at) / (count - have))
                at, have = when, count
        return spans
    per_chunk = max(1.0, (total - first_tokens(request, total)) / (len(times) - 1))
    return [(after - before) / per_chunk for before, after in pairwise(times)]


def spread(values: Iterable[float]) -> dict[str, float | None]:
    """Mean and percentiles (linear between neighbours), seconds to milliseconds."""
    given = [1000.0 * value for value in values]
    if not given:
        return {"mean": None, "p50": None, "p95": None, "p99": None}
    places = statistics.quantiles(given, n=100, method="inclusive") if len(given) > 1 else given * 99
    figures = {"mean": statistics.fmean(given), "p50": places[49], "p95": places[94], "p99": places[98]}
    return {name: round(value, 3) for name, value in figures.items()}


def one(request: Request, max_tokens: int, *, open_loop: bool) -> dict[str, Any]:
    """A request as the result file keeps it."""
    total, source = tokens(request, max_tokens)
    began = request.intended if open_loop else request.sent
    first = request.times[0] - began if request.times else None
    speed = decode(request, total)
    details = (request.usage or {}).get("completion_tokens_details") or {}
    shown: dict[str, Any] = {
        "number": request.number,
        "prompt": request.prompt,
        "ok": request.ok,
        "ttft_ms": _ms(first),
        "e2e_ms": _ms(request.ended - began if request.ok else None),
        "output_tokens": total,
        "tokens_from": source,
        "prompt_tokens": (request.usage or {}).get("prompt_tokens"),
        "reasoning_tokens": details.get("reasoning_tokens") if isinstance(details, dict) else None,
        "chunks": len(request.times),
        "tokens_per_sec": round(speed, 3) if speed else None,
        "itl_ms": spread(gaps(request, total)),
        "finish_reason": request.finish,
        "connect_ms": _ms(request.connect_s),
        "guard": request.verdict.as_dict() if request.verdict else None,
        "text_tail": request.tail,
    }
    if open_loop:
        shown["started_late_ms"] = _ms(request.sent - request.intended) if request.sent else None
    if request.retried:
        shown["sent_again"] = "the server had closed the idle connection"
    return shown | ({"error": request.error, "detail": request.detail} if request.error else {})


def level(
    requests: Sequence[Request],
    max_tokens: int,
    *,
    streams: int,
    open_loop: bool,
    bound: float | None = None,
    ceiling: float | None = None,
    tools: bool = False,
) -> dict[str, Any]:
    """A level as the result file keeps it: the contract's keys first."""
    good = [request for request in requests if request.ok]
    rows = [one(request, max_tokens, open_loop=open_loop) for request in requests]
    totals = [tokens(request, max_tokens)[0] for request in good]
    speeds = [speed for r, n in zip(good, totals, strict=True) if (speed := decode(r, n)) is not None]
    between = spread(gap for r, n in zip(good, totals, strict=True) for gap in gaps(r, n))
    between["mean"] = _ms(_mean_gap(good, totals))
    rounds = max(1.0, len(requests) / streams)
    wall = max(r.ended for r in good) - min(r.sent for r in good) if good else 0.0
    most = at_once(good)
    counted = [(count, r.times[0] - r.sent) for r in good if (count := prompt_tokens(r)) is not None]
    prompted, waits = [count for count, _ in counted], [wait for _, wait in counted]
    return {
        "concurrency": streams,
        "requests": len(requests),
        "ok": len(good),
        "output_tokens": sum(totals),
        "ttft_ms": spread(r.times[0] - (r.intended if open_loop else r.sent) for r in good),
        "itl_ms": between,
        "decode_tok_s": round(statistics.fmean(speeds), 3) if speeds else None,
        "sum_tok_s": round(sum(speeds) / rounds, 3) if speeds and not open_loop else None,
        "wall_tok_s": round(sum(totals) / wall, 3) if wall > 0 else None,
        "prompt_tokens": round(statistics.fmean(prompted), 1) if prompted else None,
        "prompt_tok_s": round(sum(prompted) / sum(waits), 1) if prompted and sum(waits) > 0 else None,
        "at_once": most,
        "guard": verdict(rows, bound, ceiling, min(streams, most or streams)),
        "bound_tok_s": bound,
        "ceiling_tok_s": ceiling,
        "seconds": round(wall, 3),
        "chunk_ms": spread(b - a for r in good for a, b in pairwise(r.times)),
        "e2e_ms": spread(r.ended - (r.intended if open_loop else r.sent) for r in good),
        "tokens_from": dict(Counter(row["tokens_from"] for row in rows if row["ok"])),
        "estimated": any(row["tokens_from"] != "engine" for row in rows if row["ok"]),
        "errors": dict(Counter(str(r.error) for r in requests if r.error)),
        "tool_calls": tool_calls(good) if tools else None,
        "per_request": rows,
    }


def tool_calls(good: Sequence[Request]) -> dict[str, Any]:
    """Answers whose calls a program could carry out, and what was wrong with the others."""
    wrong = [judge(request.calls) for request in good]
    return {"answers": len(good), "valid": wrong.count(""), "wrong": dict(Counter(filter(None, wrong)))}


def at_once(good: Sequence[Request]) -> int | None:
    """The most that were answered at the same time: an engine that takes fewer lets the others wait."""
    spans = [(r.times[0], r.times[-1]) for r in good if len(r.times) > 1]
    moments = sorted([(end, -1) for _, end in spans] + [(begin, 1) for begin, _ in spans])
    return max(accumulate(step for _, step in moments), default=None)


def verdict(
    rows: Sequence[dict[str, Any]], bound: float | None, ceiling: float | None = None, streams: int | None = None
) -> dict[str, Any]:
    """One garbage request makes the level garbage; else the look across all of them decides."""
    done = [row for row in rows if row["chunks"]]
    bad = [row for row in done if row["guard"] and row["guard"]["verdict"] == "garbage"]
    if bad:
        first = bad[0]["guard"]
        why = f"{len(bad)} of {len(rows)} requests; request {bad[0]['number']}: {first.get('why', first['kind'])}"
        return {**first, "why": why, "garbage": len(bad)}
    ended = [row for row in done if row["ok"]]
    if not ended:
        return {"verdict": "unknown", "kind": None, "at_chunk": None, "at_char": None, "why": "no request ended well"}
    judged = judge_batch(ended, bound_tok_s=bound, ceiling_tok_s=ceiling, concurrency=streams)
    return {**judged, "garbage": 0}


def _mean_gap(good: Sequence[Request], totals: Sequence[int]) -> float | None:
    """All time between first and last arrivals over all tokens that came in it."""
    pairs = [(r, n) for r, n in zip(good, totals, strict=True) if len(r.times) > 1]
    count = sum(n - first_tokens(r, n) for r, n in pairs)
    return sum(r.times[-1] - r.times[0] for r, _ in pairs) / count if count > 0 else None


def _ms(seconds: float | None) -> float | None:
    return round(seconds * 1000, 3) if seconds is not None else None
