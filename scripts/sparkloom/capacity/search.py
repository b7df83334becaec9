"""The smallest change that makes a plan fit: one flag, then two, then more Sparks, in this order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from sparkloom.capacity.demand import read
from sparkloom.capacity.memory import fit
from sparkloom.capacity.subject import Subject
from sparkloom.profile import Parallel

MOST_NODES = 8


@dataclass(frozen=True, slots=True)
class Change:
    text: str  # for a person
    overrides: tuple[str, ...]  # for `--set`
    subject: Subject


def smallest(subject: Subject, nodes: int) -> Change | None:
    """None when nothing helps. `nodes`: how many Sparks the inventory has."""
    ways = (_fraction, _slots, _context, _requests)
    for way in ways:
        found = next((change for change in way(subject) if fit(change.subject).fits), None)
        if found:
            return found
    for first in (_slots, _context, _requests):
        for half in first(subject):
            found = next((change for change in _fraction(half.subject) if fit(change.subject).fits), None)
            if found:
                return _both(half, found)
    return _nodes(subject, nodes)


def _both(first: Change, second: Change) -> Change:
    return Change(f"{first.text} and {second.text}", first.overrides + second.overrides, second.subject)


def _fraction(subject: Subject) -> Iterator[Change]:
    """The nearest value first, up before down: more cache is what most refusals want."""
    demand = read(subject)
    flag = demand.fraction_flag
    if not flag or "." in flag:
        return
    start = round(demand.fraction * 100)
    for distance in range(1, 46):
        for value in (start + distance, start - distance):
            if 50 <= value <= 95:
                fraction = value / 100
                text = f"{flag} {demand.fraction:g} -> {fraction:g}"
                yield Change(text, (f"launch.{flag}={fraction:g}",), subject.with_flag(flag, fraction))


def _slots(subject: Subject) -> Iterator[Change]:
    demand = read(subject)
    if subject.engine != "sglang" or demand.slots is None:
        return
    each = demand.slots_per_request
    for slots in range((demand.slots - 1) // each * each, 0, -each):
        yield _set(subject, "max_mamba_cache_size", demand.slots, slots)


def _context(subject: Subject) -> Iterator[Change]:
    """Halves; SGLang starts with a pool shorter than its context, so a shorter one gains it nothing."""
    demand = read(subject)
    length = demand.context // 2
    while subject.engine != "sglang" and length >= 4096:
        yield _set(subject, demand.context_flag, demand.context, length)
        length //= 2


def _requests(subject: Subject) -> Iterator[Change]:
    demand = read(subject)
    running = (demand.running or 0) // 2
    while running >= 1:
        yield _set(subject, demand.running_flag, demand.running or 0, running)
        running //= 2


def _set(subject: Subject, flag: str, old: int, new: int) -> Change:
    return Change(f"{flag} {old:,} -> {new:,}", (f"launch.{flag}={new}",), subject.with_flag(flag, new))


def _nodes(subject: Subject, have: int) -> Change | None:
    model = subject.model
    for count in range(subject.parallel.nodes + 1, MOST_NODES + 1):
        split = _split(subject, count)
        if split is None:
            continue
        bigger = replace(subject, parallel=split)
        if fit(bigger).fits is not True:
            found = next((c for c in _fraction(bigger) if fit(c.subject).fits), None)
            if found is None:
                continue
            bigger, extra, sets = found.subject, f" and {found.text}", found.overrides
        else:
            extra, sets = "", ()
        ep = f", ep {split.ep}" if model.experts and split.ep > 1 else ""
        lack = f"; this inventory has {have}" if have < count else ""
        text = f"{count} nodes instead of {subject.parallel.nodes} (tp {split.tp}, pp {split.pp}{ep}){extra}{lack}"
        keys = tuple(f"launch.parallel.{name}={getattr(split, name)}" for name in ("nodes", "tp", "pp", "ep"))
        return Change(text, keys + sets, bigger)
    return None


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
