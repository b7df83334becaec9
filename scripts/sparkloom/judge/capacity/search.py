"""The smallest change that makes a plan fit: one flag, then two, then more Sparks, in this order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from sparkloom.inputs.profile import FlagValue, Model, Parallel
from sparkloom.launch import engines
from sparkloom.launch.view import ModelView

MOST_NODES = 8
Enough = Callable[[ModelView], bool]


@dataclass(frozen=True, slots=True)
class Change:
    text: str  # for a person
    overrides: tuple[str, ...]  # for `--set`
    view: ModelView


def smallest(view: ModelView, nodes: int) -> Change | None:
    """None when nothing helps. `nodes`: how many Sparks the inventory has."""
    return within(view) or _nodes(view, nodes)


def within(view: ModelView) -> Change | None:
    """The same without more Sparks."""
    if not _too_heavy(view):
        for way in (_fraction, _slots, _prefill, _context, _requests):
            if change := way(view, engines.sure):
                return change
        for way in (_slots, _prefill, _context, _requests):
            half = way(view, _fits_at_some_fraction)
            rest = _fraction(half.view, engines.sure) if half else None
            if half and rest:
                return Change(f"{half.text} and {rest.text}", half.overrides + rest.overrides, rest.view)
    return None


def _too_heavy(view: ModelView) -> bool:
    """No flag makes weights lighter."""
    memory = engines.fit(view).memory
    return memory["weights_gib_per_rank"].number > memory["free_before_load_gib"].number


def _fits_at_some_fraction(view: ModelView) -> bool:
    flag = engines.requirements(view).fraction_flag
    return bool(flag) and any(engines.sure(view.with_flag(flag, percent / 100)) for percent in range(95, 49, -1))


def _fraction(view: ModelView, enough: Enough) -> Change | None:
    """The nearest value first, up before down: more cache is what most refusals want."""
    needs = engines.requirements(view)
    flag, start = needs.fraction_flag, round(needs.fraction * 100)
    if not flag or "." in flag:
        return None
    near = sorted(range(50, 96), key=lambda percent: (abs(percent - start), -percent))
    values = [percent / 100 for percent in near if percent != start]
    return _first(view, flag, f"{needs.fraction:g}", values, enough)


def _slots(view: ModelView, enough: Enough) -> Change | None:
    """The most slots that fit. Fewer always cost less, so halving finds them."""
    needs = engines.requirements(view)
    if needs.slots is None:
        return None
    each = needs.slots_per_request
    low, high = 0, (needs.slots - 1) // each
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if enough(view.with_flag(needs.slots_flag, middle * each)) else (low, middle - 1)
    if low == 0:
        return None
    return _set(view, needs.slots_flag, f"{needs.slots:,}", low * each)


def _prefill(view: ModelView, enough: Enough) -> Change | None:
    """Fewer tokens of prompts at once: a longer wait for the first token, and nothing else."""
    flag, ahead = engines.get(view.engine).called.get("prefill"), engines.requirements(view).ahead
    return _first(view, flag, f"{ahead:,}", [n for n in _halves(ahead) if n >= 1024], enough) if flag else None


def _context(view: ModelView, enough: Enough) -> Change | None:
    needs = engines.requirements(view)
    if needs.short_pool:
        return None
    lengths = [length for length in _halves(needs.context) if length >= 4096]
    return _first(view, needs.context_flag, f"{needs.context:,}", lengths, enough)


def _requests(view: ModelView, enough: Enough) -> Change | None:
    needs = engines.requirements(view)
    running = needs.running or 0
    return _first(view, needs.running_flag, f"{running:,}", _halves(running), enough)


def _halves(number: int) -> Iterator[int]:
    while number > 1:
        number //= 2
        yield number


def _first(
    view: ModelView, flag: str, old: str, values: Iterable[int] | Iterable[float], enough: Enough
) -> Change | None:
    changes = (_set(view, flag, old, value) for value in values)
    return next((change for change in changes if enough(change.view)), None)


def _set(view: ModelView, flag: str, old: str, new: FlagValue) -> Change:
    shown = f"{new:,}" if isinstance(new, int) else f"{new:g}" if isinstance(new, float) else str(new)
    return Change(f"{flag} {old} -> {shown}", (f"launch.{flag}={new}",), view.with_flag(flag, new))


def _nodes(view: ModelView, have: int) -> Change | None:
    """More Sparks, as few as will do; where that alone is not enough, with another fraction."""
    splits = (split_over(view.model, view.parallel, n) for n in range(view.parallel.nodes + 1, MOST_NODES + 1))
    for split in filter(None, splits):
        bigger = view.split(split)
        more = None if engines.sure(bigger) else _fraction(bigger, engines.sure)
        if more is None and not engines.sure(bigger):
            continue
        text = f"{split.nodes} nodes instead of {view.parallel.nodes} (tp {split.tp}, pp {split.pp}, ep {split.ep})"
        text += f" and {more.text}" if more else ""
        text += f"; this inventory has {have}" if have < split.nodes else ""
        return Change(text, written(split) + (more.overrides if more else ()), more.view if more else bigger)
    return None


def written(split: Parallel) -> tuple[str, ...]:
    """As `--set` takes it."""
    return tuple(f"launch.parallel.{name}={size}" for name, size in split.as_dict().items())


def split_over(model: Model, now: Parallel, count: int) -> Parallel | None:
    """The same kind of split over another number of nodes: all ranks in one tensor group unless it already was a
    pipeline; copies stay as many. None where the model cannot be cut so."""
    if now.pp > 1:
        each = now.tp * now.dp
        return Parallel(nodes=count, tp=now.tp, pp=count // each, dp=now.dp, ep=now.ep) if count % each == 0 else None
    tp, rest = divmod(count, now.dp)
    heads = model.attention.kv_heads
    if rest or model.attention.q_heads % tp or (heads % tp and tp % heads):
        return None
    ep = count if now.ep > 1 else 1
    if model.experts and (model.experts.routed % ep or model.experts.inter % (tp if ep == 1 else 1)):
        return None
    return Parallel(nodes=count, tp=tp, pp=1, dp=now.dp, ep=ep)
