"""So many conversations of one length at once: is there room, how long until the first token, how fast then."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from sparkloom.inputs.profile import LoadedProfile
from sparkloom.judge import profile_status
from sparkloom.judge.capacity.prefill import Prefill
from sparkloom.judge.capacity.speed import Speed
from sparkloom.judge.capacity.verdict import VERDICTS
from sparkloom.launch import engines
from sparkloom.launch.memory.fit import Fit
from sparkloom.launch.view import ModelView

LEVELS = (1, 4, 8, 16)  # at which evidence has numbers
Candidate = tuple[LoadedProfile, ModelView]
LISTED = ("fits", "uncertain")  # the order in which they are listed


@dataclass(frozen=True, slots=True)
class Asked:
    count: int
    context: int  # tokens of each, with its answer
    prefix_hit: float = 0.0  # share of a prompt that the prefix cache already has


def sessions(view: ModelView, asked: Asked) -> dict[str, Any]:
    """What the JSON of a plan says under `sessions`; each time as [a good day, a bad day] in seconds."""
    flag, allowed = engines.requirements(view).context_flag, engines.requirements(view).context
    told = view.with_flag(flag, asked.context)
    careful, hopeful = engines.fit(told), engines.fit(replace(told, hopeful=True))
    fits, reason = _verdict(careful, hopeful, asked)
    notes = []
    if allowed < asked.context:
        notes.append(f"{flag} is {allowed:,} in this launch: set it to {asked.context:,}")
    if told.model.context < asked.context:
        notes.append(f"the model's own context is {told.model.context:,} tokens")
    return {
        "count": asked.count,
        "context": asked.context,
        "prefix_hit": asked.prefix_hit,
        "verdict": VERDICTS[fits],
        "reason": reason,
        "room": _room(careful)[0] if careful.fits else 0,
        "gib_each": careful.memory["full_context_gib"].shown if "full_context_gib" in careful.memory else None,
        "first_token_s": _first_token(told, asked),
        "decode_tok_s": _decode(told, asked),
        "notes": notes,
    }


def _room(fit: Fit) -> tuple[int, str]:
    """Sessions of that length at once, and what limits them: the cache, or what may run."""
    if fit.fits is False:
        return 0, "memory"
    named = {"the cache": "full_context_requests", "running requests": "max_running_requests"}
    known = {words: fit.limits[name].value for words, name in named.items() if name in fit.limits}
    limits = {words: int(value) for words, value in known.items() if value is not None}
    least = min(limits, key=limits.__getitem__, default="memory")
    return limits.get(least, 0), least


def _verdict(careful: Fit, hopeful: Fit, asked: Asked) -> tuple[bool | None, str]:
    (room, limit), (most, at_best) = _room(careful) if careful.fits else (0, "memory"), _room(hopeful)
    if careful.fits is False and not hopeful.fits:
        return False, careful.reason
    if room >= asked.count:
        return True, f"room for {room} at once, by {limit}"
    if most >= asked.count:
        return None, f"uncertain: room for {room} at worst, for {most} at best"
    return False, f"room for {most} at once, by {at_best}: the others wait, and push each other's cache out"


def _first_token(view: ModelView, asked: Asked) -> dict[str, Any]:
    """Cold, and with the cached share of the prompt; alone, and as the last of all that ask at the same moment."""
    prefill, cached = Prefill(view), int(asked.context * asked.prefix_hit)
    cold, warm = prefill.interval(asked.context), prefill.interval(asked.context - cached, cached)
    answer = {"cold": _span(cold), "cold_last_of_all": _span(cold, asked.count)}
    if cached:
        answer |= {"warm": _span(warm), "warm_last_of_all": _span(warm, asked.count)}
    return answer


def _span(ends: tuple[float, float], times: int = 1) -> list[float]:
    return [round(end * times, 1) for end in ends]


def _decode(view: ModelView, asked: Asked) -> list[float] | None:
    """Tokens per second of each session while all of them are answered, at that depth."""
    span = Speed(view, live=float(asked.context)).interval(asked.count)
    return [round(end / asked.count, 1) for end in span] if span else None


def ranking(candidates: Iterable[Candidate], asked: Asked, nodes: int | None) -> list[dict[str, Any]]:
    """As `profiles --fits --json` prints it: those with room, measured before predicted speeds, highest first."""
    return sorted(_entries(candidates, asked, nodes), key=_place)


def _entries(candidates: Iterable[Candidate], asked: Asked, nodes: int | None) -> Iterator[dict[str, Any]]:
    for loaded, view in candidates:
        entry, best = profile_status.entry(loaded), profile_status.best_evidence(loaded.profile)
        if nodes is not None and entry["nodes"] > nodes:
            continue
        told = sessions(view, asked)
        if told["verdict"] not in LISTED:
            continue
        level = min(LEVELS, key=lambda n: abs(n - asked.count))
        numbers = best.numbers if best and best.status == "measured" else None
        measured = getattr(numbers, f"n{level}", None)
        speed = Speed(view)
        predicted, span = speed.predicted(asked.count), speed.interval(asked.count)
        yield {
            **entry,
            "verdict": told["verdict"],
            "room": told["room"],
            "measured_tok_s": measured,
            "measured_at": level if measured else None,
            "predicted_tok_s": None if predicted is None else round(predicted, 1),
            "interval": [round(end, 1) for end in span] if span else None,
            "first_token_s": told["first_token_s"]["cold"],
            "notes": told["notes"],
        }


def _place(entry: dict[str, Any]) -> tuple[int, bool, float, str]:
    speed = entry["measured_tok_s"] or entry["predicted_tok_s"] or 0.0
    return LISTED.index(entry["verdict"]), entry["measured_tok_s"] is None, -speed, entry["name"]
