"""What is free when the first weight is read: measured on the site, or the range that Sparks have shown."""

from __future__ import annotations

from dataclasses import dataclass

from sparkloom.launch.memory import constants
from sparkloom.launch.memory.figure import Figure
from sparkloom.launch.view import ModelView


@dataclass(frozen=True, slots=True)
class Free:
    """GiB from `least` to `most`; the same where one figure is planned with."""

    least: float
    most: float
    formula: str
    origin: str


def of(view: ModelView, taken: Figure, at_best: Figure | None = None) -> Free:
    """`taken` is gone of the whole machine before the load, `at_best` less; both give way to the site's own figure."""
    usable, measured = view.platform.usable_gib, view.platform.measured_free_gib
    if measured is not None:
        least, most = constants.ENGINE_START_GIB if view.nodes > 1 else constants.ENGINE_START_ALONE_GIB
        low, high = measured
        said = f"{low:.1f} GiB free to CUDA on the idle node with least, {high:.1f} once the page cache gives back"
        said += f", less {least:g} to {most:g} for the engine's start"
        return Free(low - most, high - least, said, "measured by preflight on this site")
    gone, less = float(taken.value or 0), float((at_best or taken).value or 0)
    said = f"{usable:g} - {gone:g}: {taken.formula}"
    if at_best:
        said += f"; up to {usable - less:.1f}: {at_best.formula}"
    return Free(usable - gone, usable - less, said, taken.origin)
