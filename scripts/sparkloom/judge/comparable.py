"""What was measured near a launch, and how far two figures can be held against each other: what was asked, by what.

A figure of a speculating launch is as good as its text is easy to foresee: one server wrote 120 tokens a second of
counting and 46 of prose. So a comparison says first what spoils it, then what it is about, then what nobody wrote down.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from sparkloom.base.errors import InputError, did_you_mean
from sparkloom.inputs import profile as profiles
from sparkloom.inputs.profile import Evidence, Profile
from sparkloom.judge import measured_rows, profile_status
from sparkloom.judge.measured_rows import Row
from sparkloom.launch.resolve import Launch
from sparkloom.launch.view import LaunchView

SUBJECTS = ("engine", "release", "image")  # what one compares, as a rule: named, and no fault
PROMPT = ("content", "input", "output", "temperature", "thinking", "counted")
PLACE = ("model", "nodes", "tp", "pp", "ep", "transport")
NEAR = 2.0  # prompts and answers up to twice as long are of one kind
WEIGHTS: dict[str, float] = measured_rows.WORDS["distance"]


@dataclass(frozen=True, slots=True)
class Measured:
    """One figure's conditions under one name; None is unknown."""

    name: str
    facts: dict[str, Any]
    numbers: dict[str, float]


@dataclass(frozen=True, slots=True)
class Comparison:
    one: Measured
    other: Measured
    spoilt: tuple[str, ...]
    differs: tuple[str, ...]
    unknown: tuple[str, ...]

    @property
    def verdict(self) -> str:
        if self.spoilt:
            return "not comparable"
        return "comparable with care" if self.unknown else "comparable"

    def as_dict(self) -> dict[str, Any]:
        sides = {"one": self.one, "other": self.other}
        named = {key: {"name": side.name, **side.facts, "numbers": side.numbers} for key, side in sides.items()}
        lists = {"spoilt": [*self.spoilt], "differs": [*self.differs], "unknown": [*self.unknown]}
        return {"verdict": self.verdict, **lists, **named}


def compare(one: Measured, other: Measured) -> Comparison:
    speculates = any(side.facts["speculation"] for side in (one, other))
    spoilt, unknown = [], []
    for key in (*PLACE, *PROMPT):
        left, right = one.facts[key], other.facts[key]
        if left is None or right is None:
            unknown.append(key)
        elif _apart(key, left, right, speculates):
            spoilt.append(f"{key}: {left} and {right}")
    other_keys = [key for key in (*SUBJECTS, "speculation") if one.facts[key] != other.facts[key]]
    differs = [f"{key}: {one.facts[key]} and {other.facts[key]}" for key in other_keys]
    return Comparison(one, other, tuple(spoilt), tuple(differs), tuple(unknown))


def _apart(key: str, left: Any, right: Any, speculates: bool) -> bool:
    if key in ("input", "output"):
        return bool(max(left, right) > NEAR * min(left, right))
    if key in ("content", "temperature", "thinking"):
        return bool(left != right and speculates)  # what the text is costs a launch without drafts nothing
    return bool(left != right)


def named(text: str) -> Measured:
    """PROFILE (its best figure), PROFILE#2 (its second), or the id of a measured row."""
    for row in measured_rows.shipped():
        if str(row["id"]) == text:
            return _of_row(row)
    name, _, number = text.partition("#")
    loaded = profiles.load(name)
    figures = [entry for entry in loaded.profile.evidence if entry.numbers]
    best = profile_status.best_evidence(loaded.profile)
    figures.sort(key=lambda entry: entry is not best)  # without a number the best is meant
    if not figures:
        raise InputError.single(text, f"{loaded.name} has no evidence with figures", rule="no-figures")
    wanted = int(number) if len(number) < 6 and number.isdecimal() else 1 if not number else 0
    if not 1 <= wanted <= len(figures):
        known = (f"{loaded.name}#{at + 1}" for at in range(len(figures)))
        raise InputError.single(
            text, f"no such figure; those of this profile are {', '.join(known)}", rule="no-figures"
        )
    return of_evidence(f"{loaded.name}#{wanted}", loaded.profile, figures[wanted - 1])


def of_evidence(name: str, profile: Profile, entry: Evidence) -> Measured:
    config = dict(entry.config or {})
    parallel = config.get("parallel")
    spread = {**profile.launch.parallel.model_dump(), **(parallel if isinstance(parallel, dict) else {})}
    drafts = config.get("speculative_config") or config.get("speculative_algorithm")
    prompt = entry.prompt.model_dump() if entry.prompt else {}
    numbers = entry.numbers.model_dump(exclude_none=True) if entry.numbers else {}
    return Measured(
        name,
        {
            "model": profile.model.id,
            **spread,
            "transport": config.get("transport", "roce"),
            "engine": profile.engine.name,
            "release": entry.release or profile.engine.release,
            "image": entry.image or profile.engine.image,
            "speculation": _drafting(drafts),
            **{key: prompt.get(key) for key in PROMPT},
            "counted": entry.counted,
        },
        numbers,
    )


def _of_row(row: Row) -> Measured:
    facts = {key: row.get(key) for key in ("model", "tp", "pp", "ep", "engine", "image", "transport")}
    drafts = row.get("speculative_algorithm") or row.get("speculative")
    return Measured(
        str(row["id"]),
        {
            **facts,
            "nodes": row.get("nnodes"),
            "release": row.get("engine_version"),
            "speculation": _drafting(drafts),
            **dict.fromkeys(PROMPT),
            "counted": "request",
        },
        {key: float(row[key]) for key in ("n1", "n4", "n8", "n16") if row.get(key) is not None},
    )


def _drafting(value: Any) -> str | None:
    if isinstance(value, dict):
        return f"{value.get('method')} {value.get('num_speculative_tokens', '')}".strip()
    return str(value) if value else None


@dataclass(frozen=True, slots=True)
class Near:
    """One measured row and how it differs from what was asked: (setting, asked, measured)."""

    row: Row
    distance: float
    differences: tuple[tuple[str, Any, Any], ...]

    def as_dict(self) -> dict[str, Any]:
        keys = ("setting", "asked", "measured")
        named = [dict(zip(keys, difference, strict=True)) for difference in self.differences]
        return {**as_dict(self.row), "distance": self.distance, "differences": named}


def as_dict(row: Row) -> dict[str, Any]:
    """A row as it stands, with the test log that it was read from."""
    return {**row, "source": str(row.get("id", "")).split("#")[0]}


def find(launch: Launch, limit: int = 5) -> list[Near]:
    """The runs closest to a launch, nearest first; each difference is named."""
    asked = _settings(launch.view())
    runs = [_near(row, asked) for row in measured_rows.shipped() if measured_rows.failed(row) is not None]
    return sorted(runs, key=lambda near: (near.distance, str(near.row.get("id"))))[:limit]


def _near(row: Row, asked: Mapping[str, Any]) -> Near:
    measured = _all_measured()[str(row["id"])]
    names = [name for name in WEIGHTS if asked.get(name) != measured.get(name)]
    differences = tuple((name, asked.get(name), measured.get(name)) for name in names)
    return Near(row, round(sum(WEIGHTS[name] for name in names), 3), differences)


@cache
def _all_measured() -> dict[str, dict[str, Any]]:
    return {str(row["id"]): _settings(measured_rows.view_of(row)) for row in measured_rows.shipped()}


def _settings(view: LaunchView) -> dict[str, Any]:
    fixed = {
        "model": view.model_id, "architecture": view.architecture, "packing": view.packing, "release": view.release,
        "image": view.image.split("@")[0], "nodes": view.nodes, "tp": view.tp, "pp": view.pp, "dp": view.dp,
        "ep": view.ep,
    }  # fmt: skip
    flags = {name: view.flags.get(name) for name in WEIGHTS if name not in fixed}
    for switch in ("disable_cuda_graph", "disable_piecewise_cuda_graph"):
        flags[switch] = bool(flags[switch])
    return {**fixed, **flags}


def best(model: str, limit: int = 5) -> list[Row]:
    """The sane runs of a model, best first: by n = 8, then 4, then 1. Names match in any case, whole or in part."""
    wanted = model.lower()
    known = [name for name in models() if wanted in name.lower()]
    if not known or not wanted:
        hint = did_you_mean(model, models())
        raise InputError.single("MODEL", f"no measured row names a model like '{model}'{hint}", rule="unknown-model")
    rows = [row for row in measured_rows.shipped() if row["model"] in known and measured_rows.failed(row) is False]
    rows = [row for row in rows if any(row.get(n) is not None for n in ("n1", "n4", "n8"))]
    return sorted(rows, key=lambda row: tuple(-(row.get(n) or 0.0) for n in ("n8", "n4", "n1")))[:limit]


@cache
def models() -> tuple[str, ...]:
    return tuple(sorted({str(row["model"]) for row in measured_rows.shipped()}))
