"""Which profiles are worth serving for so many conversations of one length: those that fit, the fastest first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from sparkloom.inputs.profile import LoadedProfile
from sparkloom.judge import profile_status
from sparkloom.judge.capacity.sessions import Asked, sessions
from sparkloom.judge.capacity.speed import Speed
from sparkloom.launch.view import ModelView

LEVELS = (1, 4, 8, 16)  # at which evidence has numbers
Candidate = tuple[LoadedProfile, ModelView]
VERDICTS = ("fits", "uncertain")  # the order in which they are listed


def ranking(candidates: Iterable[Candidate], asked: Asked, nodes: int | None) -> list[dict[str, Any]]:
    """As `profiles --fits --json` prints it: measured speeds before predicted ones, each from high to low."""
    return sorted(_entries(candidates, asked, nodes), key=_place)


def _entries(candidates: Iterable[Candidate], asked: Asked, nodes: int | None) -> Iterator[dict[str, Any]]:
    for loaded, view in candidates:
        entry, best = profile_status.entry(loaded), profile_status.best_evidence(loaded.profile)
        if nodes is not None and entry["nodes"] > nodes:
            continue
        told = sessions(view, asked)
        if told["verdict"] not in VERDICTS:
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
    return VERDICTS.index(entry["verdict"]), entry["measured_tok_s"] is None, -speed, entry["name"]
