"""The smallest change that makes a plan fit: one flag, then two, then more Sparks, in this order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from sparkloom.inputs.profile import FlagValue, Parallel
from sparkloom.judge.capacity.memory import fit
from sparkloom.judge.capacity.requirements import read
from sparkloom.judge.capacity.view import Subject

MOST_NODES = 8
Enough = Callable[[Subject], bool]


@dataclass(frozen=True, slots=True)
class Change:
    text: str  # for a person
    overrides: tuple[str, ...]  # for `--set`
    subject: Subject


def smallest(subject: Subject, nodes: int) -> Change | None:
    """None when nothing helps. `nodes`: how many Sparks the inventory has."""
    if not _too_heavy(subject):
        for way in (_fraction, _slots, _context, _requests):
            if found := way(subject, _fits):
                return found
        for way in (_slots, _context, _requests):
            half = way(subject, _fits_at_some_fraction)
            rest = _fraction(half.subject, _fits) if half else None
            if half and rest:
                return Change(f"{half.text} and {rest.text}", half.overrides + rest.overrides, rest.subject)
    return _nodes(subject, nodes)


def _fits(subject: Subject) -> bool:
    return fit(subject).fits is True


def _too_heavy(subject: Subject) -> bool:
    """No flag makes weights lighter."""
    memory = fit(subject).memory
    return float(memory["weights_gib_per_rank"].value or 0) > float(memory["free_before_load_gib"].value or 0)


def _fits_at_some_fraction(subject: Subject) -> bool:
    flag = read(subject).fraction_flag
    return bool(flag) and any(_fits(subject.with_flag(flag, percent / 100)) for percent in range(95, 45, -5))


def _fraction(subject: Subject, enough: Enough) -> Change | None:
    """The nearest value first, up before down: more cache is what most refusals want."""
    demand = read(subject)
    flag, start = demand.fraction_flag, round(demand.fraction * 100)
    if not flag or "." in flag:
        return None
    near = sorted(range(50, 96), key=lambda percent: (abs(percent - start), -percent))
    values = [percent / 100 for percent in near if percent != start]
    return _first(subject, flag, f"{demand.fraction:g}", values, enough)


def _slots(subject: Subject, enough: Enough) -> Change | None:
    """The most slots that fit. Fewer always cost less, so halving finds them."""
    demand = read(subject)
    if subject.engine != "sglang" or demand.slots is None:
        return None
    each = demand.slots_per_request
    low, high = 0, (demand.slots - 1) // each
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if enough(_with_slots(subject, middle * each)) else (low, middle - 1)
    if low == 0:
        return None
    return _set(subject, "max_mamba_cache_size", f"{demand.slots:,}", low * each)


def _with_slots(subject: Subject, slots: int) -> Subject:
    return subject.with_flag("max_mamba_cache_size", slots)


def _context(subject: Subject, enough: Enough) -> Change | None:
    """SGLang starts with a pool shorter than its context, so a shorter one gains it nothing."""
    demand = read(subject)
    if subject.engine == "sglang":
        return None
    lengths = [length for length in _halves(demand.context) if length >= 4096]
    return _first(subject, demand.context_flag, f"{demand.context:,}", lengths, enough)


def _requests(subject: Subject, enough: Enough) -> Change | None:
    demand = read(subject)
    running = demand.running or 0
    return _first(subject, demand.running_flag, f"{running:,}", _halves(running), enough)


def _halves(number: int) -> list[int]:
    halves = []
    while number > 1:
        number //= 2
        halves.append(number)
    return halves


def _first(
    subject: Subject, flag: str, old: str, values: Sequence[int] | Sequence[float], enough: Enough
) -> Change | None:
    changes = (_set(subject, flag, old, value) for value in values)
    return next((change for change in changes if enough(change.subject)), None)


def _set(subject: Subject, flag: str, old: str, new: FlagValue) -> Change:
    shown = f"{new:,}" if isinstance(new, int) else f"{new:g}" if isinstance(new, float) else str(new)
    return Change(f"{flag} {old} -> {shown}", (f"launch.{flag}={new}",), subject.with_flag(flag, new))


def _nodes(subject: Subject, have: int) -> Change | None:
    """More Sparks, as few as will do; where that alone is not enough, with another fraction."""
    splits = (_split(subject, count) for count in range(subject.parallel.nodes + 1, MOST_NODES + 1))
    for split in _known(splits):
        bigger = replace(subject, parallel=split)
        more = None if _fits(bigger) else _fraction(bigger, _fits)
        if more is None and not _fits(bigger):
            continue
        text = f"{split.nodes} nodes instead of {subject.parallel.nodes} (tp {split.tp}, pp {split.pp}, ep {split.ep})"
        text += f" and {more.text}" if more else ""
        text += f"; this inventory has {have}" if have < split.nodes else ""
        keys = tuple(f"launch.parallel.{name}={getattr(split, name)}" for name in ("nodes", "tp", "pp", "ep"))
        return Change(text, keys + (more.overrides if more else ()), more.subject if more else bigger)
    return None


def _known(splits: Iterable[Parallel | None]) -> list[Parallel]:
    return [split for split in splits if split is not None]


def _split(subject: Subject, count: int) -> Parallel | None:
    """The same kind of split over more nodes: all ranks in one tensor group unless it already was a pipeline."""
    model, now = subject.model, subject.parallel
    if now.pp > 1:
        return Parallel(nodes=count, tp=now.tp, pp=count // now.tp, ep=now.ep) if count % now.tp == 0 else None
    heads = model.attention.kv_heads
    if model.attention.q_heads % count or (heads % count and count % heads):
        return None
    ep = count if now.ep > 1 else 1
    if model.experts and (model.experts.routed % ep or model.experts.inter % (count // ep)):
        return None
    return Parallel(nodes=count, tp=count, pp=1, ep=ep)
