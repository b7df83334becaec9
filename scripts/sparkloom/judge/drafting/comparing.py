"""Where a profile and the checkpoint that it names disagree, fact by fact, with the place in the file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from sparkloom.base import document
from sparkloom.base.finding import Finding, Severity
from sparkloom.inputs import precision
from sparkloom.inputs.checkpoint.as_model import Drafted
from sparkloom.inputs.profile import LoadedProfile, flow

_READ: dict[str, Any] = document.own(Path(__file__).with_suffix(".yml").read_text())
ROUNDED: dict[str, float] = _READ["rounded"]
NOT_COMPARED: list[str] = _READ["not_compared"]
WEIGHTY: list[str] = _READ["weighty"]
Part = Mapping[str, Any]  # of a model's facts
NEAR = 0.01  # two words for what weighs the same


def findings(loaded: LoadedProfile, facts: Drafted) -> list[Finding]:
    model = loaded.profile.model

    def compared(loc: tuple[str, ...], own: Part, given: Part, theirs: Part) -> Iterator[Finding]:
        for key in dict.fromkeys([*theirs, *given]):
            if key in NOT_COMPARED or (key not in theirs and loc == ("model",)):
                continue
            here, there = own.get(key), theirs.get(key)
            if isinstance(there, Mapping) and isinstance(here, Mapping):
                yield from compared((*loc, key), here, given.get(key) or {}, there)
            elif not _same(key, here, there, facts.otherwise if loc == ("model",) else {}):
                yield _finding(loaded, (*loc, key), here, there, facts.sources)

    # `own` has defaults too, `given` only what the file says: silence is no claim where the checkpoint has nothing.
    given, own = model.model_dump(exclude_defaults=True), model.model_dump()
    return list(compared(("model",), own, given, facts.data))


def _same(key: str, here: Any, there: Any, otherwise: Mapping[str, float]) -> bool:
    if here in (None, 0, False) and there in (None, 0, False):
        return True
    if isinstance(here, int | float) and isinstance(there, int | float) and key in ROUNDED:
        counts = (there, otherwise.get(key, there))
        return any(abs(here / count - 1) <= ROUNDED[key] for count in counts if count)
    return bool(here == there)


def _weigh_the_same(loc: tuple[str, ...], here: Any, there: Any) -> bool:
    """Other words for the same bytes: fp8, and fp8 with a scale per block of 128 x 128."""
    if "precision" not in loc or not isinstance(here, str) or not isinstance(there, str):
        return False
    return abs(precision.weight(here) / precision.weight(there) - 1) <= NEAR


def _finding(loaded: LoadedProfile, loc: tuple[str, ...], here: Any, there: Any, sources: Mapping[str, str]) -> Finding:
    shown, part = ".".join(loc), loc[1]
    weighty = part in WEIGHTY and here is not None and not _weigh_the_same(loc, here, there)
    severity: Severity = "warning" if weighty else "info"
    why = sources.get(part, "")
    given = "not given" if here is None else _shown(here)
    message = f"{shown} is {given}; the checkpoint has {_shown(there)}"
    fix = f"write {loc[-1]}: {_shown(there)}" if there is not None else f"remove {loc[-1]}"
    where = ":".join(map(str, loaded.document.position(loc)))
    told = (why,) if why else ()
    return Finding(where, "fact-differs", message, expected=_shown(there), fix=fix, severity=severity, evidence=told)


def _shown(value: Any) -> str:
    return flow(value) if value is not None else "none"
