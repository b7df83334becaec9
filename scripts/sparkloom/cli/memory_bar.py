"""The memory of one Spark as one bar: every part of the plan, and what is left, sum to what there is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from sparkloom.cli import show_start
from sparkloom.cli.show import COLOURS, coloured, number, paragraph, unicode, window

if TYPE_CHECKING:
    from rich.console import Console

CELLS = 72  # of the bar, in a window that is wide enough


class Look(NamedTuple):
    """How a part is drawn: in Unicode, in ASCII, and its colour."""

    block: str
    letter: str
    colour: str


class Part(NamedTuple):
    what: str
    gib: float
    look: Look


HOST, WEIGHTS = Look("▒", "h", "dim"), Look("█", "W", "blue")
DRAFT, STATES = Look("▓", "D", "blue"), Look("▞", "S", "magenta")
CACHE, GRAPHS = Look("▚", "K", "cyan"), Look("▄", "G", "yellow")
FREE, MISSING = Look("·", ".", COLOURS["ok"]), Look("!", "!", COLOURS["error"])


def parts(memory: dict[str, Any]) -> list[Part]:
    """Of a plan's `memory`; the last part is what nothing was planned for, or (negative) what is missing."""
    usable = memory.get("usable_gib")
    if usable is None or memory.get("weights_gib_per_rank") is None:
        return []
    free = memory.get("free_before_load_gib")
    slots, tokens = memory.get("state_slots"), memory.get("kv_tokens")
    states = _of(memory, "state_pool_gib") + _of(memory, "speculative_pool_gib")
    known = [
        Part("system, CUDA, NCCL before load", 0.0 if free is None else usable - free, HOST),
        Part("weights", _of(memory, "weights_gib_per_rank"), WEIGHTS),
        Part("draft layers and their cache", _of(memory, "draft_gib"), DRAFT),
        Part(f"states, {slots:,} slots" if slots else "states", states, STATES),
        Part(f"KV cache, {tokens:,} tokens" if tokens else "KV cache", _of(memory, "kv_pool_gib"), CACHE),
        Part("CUDA graphs", _of(memory, "graphs_gib"), GRAPHS),
    ]
    rest = usable - sum(part.gib for part in known)
    last = Part("free (activations, JIT, host)", rest, FREE) if rest >= 0 else Part("missing", rest, MISSING)
    return [*(part for part in known if part.gib > 0), last]


def draw(terminal: Console, memory: dict[str, Any], assumed: Sequence[dict[str, Any]] = ()) -> None:
    """`assumed`: of that plan; what follows from it carries its sign."""
    drawn = parts(memory)
    if not drawn:
        return
    usable = memory["usable_gib"]
    paragraph(terminal, "memory of each Spark, GiB", style="bold")
    cells = shares([max(0.0, part.gib) for part in drawn], min(CELLS, window(terminal) or CELLS))
    signs = [part.look.block if unicode() else part.look.letter for part in drawn]
    bar = zip(signs, cells, drawn, strict=True)
    terminal.print(coloured(*((sign * count, part.look.colour) for sign, count, part in bar)), soft_wrap=True)
    tenths = shares([part.gib for part in drawn], round(usable * 10))
    for part, tenth, block in zip(drawn, tenths, signs, strict=True):
        sign = show_start.sign(assumed, {HOST: "memory", WEIGHTS: "facts"}.get(part.look, ""))
        line = coloured(f"{sign}{tenth / 10:.1f}".rjust(7), " ", (block, part.look.colour), f" {part.what}")
        paragraph(terminal, line)
    paragraph(terminal, f"{number(float(usable)):>7} = what a Spark has")


def shares(values: Sequence[float], total: int) -> list[int]:
    """Whole numbers in the proportion of `values` that sum to `total`; nothing that is there becomes 0."""
    whole = sum(values) or 1.0
    exact = [value * total / whole for value in values]
    result = [max(1, int(share)) if share > 0 else -int(-share) for share in exact]
    while gap := total - sum(result):
        step = 1 if gap > 0 else -1
        able = [n for n, given in enumerate(result) if step > 0 or given > 1 or exact[n] < 0]
        nearest = max(able or range(len(result)), key=lambda n: step * (exact[n] - result[n]))
        result[nearest] += step
    return result


def _of(memory: dict[str, Any], name: str) -> float:
    return float(memory.get(name) or 0.0)
