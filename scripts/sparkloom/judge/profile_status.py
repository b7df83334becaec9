"""What a profile knows about itself: its best evidence, and where the shipped launch departs from it.

Evidence with a `config` or with `numbers` is about a launch; evidence with neither is a remark. Only the former
decides what a profile is worth. Nothing here is written in a profile: it is computed from what stands there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from sparkloom.base.finding import Finding
from sparkloom.inputs import profile as profiles
from sparkloom.inputs.profile import Evidence, LoadedProfile, Profile

EASY = ("code", "structured", "counting")
RANK = {"measured": 3, "vendor": 2, "inferred": 1, "unvalidated": 0}
UNSET = (None, False)  # a switch that is off and one that is not named give the same command line


class Difference(NamedTuple):
    key: str
    shipped: object
    measured: object

    def __str__(self) -> str:
        return f"{self.key} {_shown(self.shipped)} instead of {_shown(self.measured)}"


def best_evidence(profile: Profile) -> Evidence | None:
    """The evidence that speaks loudest for this profile: measured before claimed, then fastest at n = 8, 4, 1.

    Figures of text that any draft foresees come last among the measured ones: nobody is served counting.
    """
    about_launches = [entry for entry in profile.evidence if entry.config is not None or entry.numbers is not None]
    return max(about_launches, key=_weight, default=None)


def status(profile: Profile) -> str:
    """measured, vendor, inferred or unvalidated, by the best evidence; no evidence is unvalidated."""
    best = best_evidence(profile)
    return best.status if best else "unvalidated"


def differences(profile: Profile) -> list[Difference]:
    """Where the launch as shipped departs from the one that the best evidence measured, as far as that is known."""
    best = best_evidence(profile)
    return list(_differences(profile, best)) if best else []


def sentence(profile: Profile) -> str:
    """One sentence on how far the figures are those of this very launch; empty when they are."""
    best = best_evidence(profile)
    if best is None:
        return "nothing is recorded that was run; every value is a guess until `sparkloom bench` says otherwise"
    departures = differences(profile)
    names_flags = set(best.config or {}) - {"parallel", "transport"}
    if not departures and not names_flags:
        return f"the {best.status} figures{_figures(best)} came without their flags; the shipped ones may not be theirs"
    if not departures:
        return ""
    what = {"measured": "the best measured run", "vendor": "the vendor's recipe"}.get(best.status, "its best evidence")
    return f"the shipped launch is not {what}{_figures(best)}: " + ", ".join(map(str, departures))


def measured(loaded: LoadedProfile) -> bool:
    """Whether the best evidence is a measured run of this very launch, with nothing set (`--set`) beside its config."""
    best = best_evidence(loaded.profile)
    if best is None or best.status != "measured" or sentence(loaded.profile):
        return False
    known = {key for key, _ in _flat(best.config or {})} | {"engine.release", "engine.image"}
    changed = {".".join(map(str, loc)) for loc, file in loaded.document.files.items() if file.startswith("--set")}
    return {key.removeprefix("launch.") for key in changed} <= known


def check(loaded: LoadedProfile) -> list[Finding]:
    """What `lint` and `plan` say about it; information, no fault."""
    text = sentence(loaded.profile)
    if not text:
        return []
    best = best_evidence(loaded.profile)
    loc: tuple[str | int, ...] = ("evidence", loaded.profile.evidence.index(best)) if best else ("evidence",)
    fix = "launch with --set to repeat the measured run, or bench the shipped one and add its evidence"
    sources = (best.source,) if best else ()
    where = loaded.where(*loc)
    return [Finding(where, "shipped-differs", text, expected="", fix=fix, severity="info", evidence=sources)]


def listing() -> list[dict[str, Any]]:
    """Every shipped profile in one line each, for `sparkloom profiles`."""
    return [entry(profiles.load(name)) for name in profiles.names()]


def entry(loaded: LoadedProfile) -> dict[str, Any]:
    profile, best = loaded.profile, best_evidence(loaded.profile)
    numbers = best.numbers if best else None
    return {
        "name": loaded.name,
        "summary": profile.summary,
        "model": profile.model.id,
        "engine": profile.engine.name,
        "release": profile.engine.release,
        "image": profile.engine.image,
        "fork": profile.engine.fork.name if profile.engine.fork else None,
        **profile.launch.parallel.model_dump(),
        "status": best.status if best else "unvalidated",
        **{key: getattr(numbers, key, None) for key in ("n1", "n4", "n8")},
        **{key: getattr(best, key, None) for key in ("source", "date")},
        "differs": [difference.key for difference in differences(profile)],
    }


def _weight(entry: Evidence) -> tuple[int, bool, float, float, float]:
    numbers = entry.numbers
    plain = not (entry.prompt and entry.prompt.content in EASY)
    speeds = (numbers.n8, numbers.n4, numbers.n1) if numbers else (None, None, None)
    n8, n4, n1 = (speed or 0.0 for speed in speeds)
    return RANK[entry.status], plain, n8, n4, n1


def _differences(profile: Profile, best: Evidence) -> Iterator[Difference]:
    for key, measured in _flat(best.config or {}):
        shipped = _shipped(profile, key)
        if shipped != measured and not (shipped in UNSET and measured in UNSET):
            yield Difference(key, shipped, measured)
    for key in ("release", "image"):
        was = getattr(best, key)
        if was is not None and was != getattr(profile.engine, key):
            yield Difference(f"engine.{key}", getattr(profile.engine, key), was)


def _flat(config: dict[str, Any]) -> Iterator[tuple[str, object]]:
    for key, value in config.items():
        if key == "parallel" and isinstance(value, dict):
            yield from ((f"parallel.{part}", size) for part, size in value.items())
        else:
            yield key, value


def _shipped(profile: Profile, key: str) -> object:
    """The value that the profile ships for a key of an evidence's config."""
    if key == "transport":  # every launch over more than one node is told to fail rather than use sockets
        return "roce" if profile.launch.parallel.nodes > 1 else None
    section, _, name = key.partition(".")
    if section == "parallel":
        return getattr(profile.launch.parallel, name, None)
    if section == "env":
        return profile.env.get(name)
    return profile.launch.flags.get(key)


def _figures(best: Evidence) -> str:
    numbers = best.numbers
    known = [(n, getattr(numbers, f"n{n}")) for n in (1, 4, 8)] if numbers else []
    parts = [f"n{n} {speed:g}" for n, speed in known if speed is not None]
    return f" ({', '.join(parts)} tok/s)" if parts else ""


def _shown(value: object) -> str:
    if value is None:
        return "unset"
    return str(value).lower() if isinstance(value, bool) else str(value)
