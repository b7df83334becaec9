"""plan(launch, cluster): everything that capacity can say about one launch, each number with its formula and origin.

`sessions`: so many conversations of one length at once: is there room, how long until the first token, how fast then.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from sparkloom.inputs.cluster import Cluster
from sparkloom.inputs.platform import GB10, Platform
from sparkloom.inputs.profile import Evidence, LoadedProfile
from sparkloom.judge import profile_status
from sparkloom.judge.beyond import doubt, impossible
from sparkloom.judge.capacity import search
from sparkloom.judge.capacity.prefill import Prefill
from sparkloom.judge.capacity.search import Change
from sparkloom.judge.capacity.speed import LEVELS, Speed
from sparkloom.launch import engines
from sparkloom.launch.memory.constants import Figure
from sparkloom.launch.memory.fit import Fit
from sparkloom.launch.resolve import Launch
from sparkloom.launch.view import ModelView

EAGER = "predicted with CUDA graphs; without them decoding reached 0.66 to 0.75 of it at n = 1"
PIPELINE = (
    "a pipeline is predicted as if its stages overlapped fully; measured ones reach 10 to 45 % less from n = 4 on"
)

# In doubt where what nobody knows of the memory decides: `plan` then neither promises nor refuses.
VERDICTS: dict[bool | None, str] = {True: "fits", None: "uncertain", False: "does-not-fit"}
MEASURED_AT = (1, 4, 8, 16)  # at which evidence has numbers
Candidate = tuple[LoadedProfile, ModelView]
LISTED = ("fits", "uncertain")  # the order in which they are listed


@dataclass(frozen=True, slots=True)
class Plan:
    fit: Fit
    speed: dict[str, Figure]
    interval: dict[str, tuple[float, float]]  # of each predicted level: from a bad day to a good one
    measured: dict[str, float]
    impossible: tuple[str, ...]  # levels whose measured figure the bound of that launch forbids
    above_ceiling: tuple[str, ...]  # and those above what is expected at best, which is no verdict
    measured_source: str
    change: Change | None

    @property
    def fits(self) -> bool | None:
        return self.fit.fits

    def as_dict(self) -> dict[str, Any]:
        """The JSON of `sparkloom plan`, less what the launch and the rules add."""
        return {
            "fits": self.fit.fits,
            "verdict": VERDICTS[self.fit.fits],
            "reason": self.fit.reason,
            "change": self.change.text if self.change else None,
            "change_set": list(self.change.overrides) if self.change else [],
            "notes": list(self.fit.notes),
            "memory": {name: figure.shown for name, figure in self.fit.memory.items()},
            "limits": {name: figure.shown for name, figure in self.fit.limits.items()},
            "speed": self._speed(),
            "explain": self._explain(),
        }

    def _speed(self) -> dict[str, Any]:
        bound = {str(n): _tenth(self.speed[f"bound.{n}"]) for n in LEVELS}
        return {
            "bound_n1_tok_s": bound["1"],
            "bound": bound,
            "ceiling": {str(n): _tenth(self.speed[f"ceiling.{n}"]) for n in LEVELS},
            "predicted": {str(n): _tenth(self.speed[f"predicted.{n}"]) for n in LEVELS},
            "interval": {n: [round(low, 1), round(high, 1)] for n, (low, high) in self.interval.items()},
            "measured": self.measured or None,
            "measured_source": self.measured_source or None,
            "impossible": list(self.impossible),
            "above_ceiling": list(self.above_ceiling),
        }

    def _explain(self) -> dict[str, dict[str, str]]:
        named = {f"memory.{name}": figure for name, figure in self.fit.memory.items()}
        named |= {f"limits.{name}": figure for name, figure in self.fit.limits.items()}
        named |= {f"speed.{name}": figure for name, figure in self.speed.items()}
        return {name: {"formula": figure.formula, "origin": figure.origin} for name, figure in named.items()}


def plan(launch: Launch, cluster: Cluster, platform: Platform = GB10) -> Plan:
    best = profile_status.best_evidence(launch.profile.profile)
    return of_view(launch.view(platform), len(cluster.nodes), best)


def of_view(asked: ModelView, nodes: int, best: Evidence | None = None) -> Plan:
    """`nodes`: how many the inventory has; `best`: what was measured, if anything."""
    fitted = engines.fit(asked)
    fitted = replace(fitted, notes=(*fitted.notes, *_notes(asked)))
    change = search.smallest(asked, nodes) if fitted.fits is not True else None
    measured: dict[str, float] = {}
    beyond: list[str] = []
    above: list[str] = []
    if best and best.status == "measured":
        measured, judged = _numbers(best), Speed(asked.as_measured(best))
        beyond = [n for n, value in measured.items() if impossible(value, judged.bound(int(n)))]
        above = [n for n, value in measured.items() if n not in beyond and doubt(value, judged.ceiling(int(n)))]
    source = best.source if best and measured else ""
    speed = Speed(asked)
    interval = {str(n): span for n in LEVELS if (span := speed.interval(n))}
    return Plan(fitted, speed.figures(), interval, measured, tuple(beyond), tuple(above), source, change)


def _notes(asked: ModelView) -> list[str]:
    notes = [PIPELINE] if asked.parallel.pp > 1 else []
    if engines.requirements(asked).eager:
        notes.append(EAGER)
    return notes


def _numbers(item: Evidence) -> dict[str, float]:
    values = {str(n): getattr(item.numbers, f"n{n}", None) for n in LEVELS}
    return {n: float(value) for n, value in values.items() if value is not None}


def _tenth(figure: Figure) -> float | None:
    return None if figure.value is None else round(float(figure.value), 1)


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
        level = min(MEASURED_AT, key=lambda n: abs(n - asked.count))
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
