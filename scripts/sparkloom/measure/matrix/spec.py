"""A grid of configurations as data: the spec, its cells, and one JSON file for each cell that ran.

    name: ultra-moe
    profile: nvidia--nemotron-3-ultra-550b-a55b-nvfp4
    axes:
      launch.moe_runner_backend: [triton, flashinfer_cutlass]
      launch.mem_fraction_static: [0.85, 0.9]
    excludes:
      - {launch.moe_runner_backend: triton, launch.mem_fraction_static: 0.9}

A cell's id follows from the profile and the cell's own values, so it stays the same when axes grow.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, model_validator

from sparkloom import case
from sparkloom.base import document, json_text
from sparkloom.base.document import Document
from sparkloom.base.errors import InputError, Problem
from sparkloom.inputs.profile import Strict
from sparkloom.judge.beyond import impossible
from sparkloom.judge.capacity import speed

Status = Literal["startup_crash", "bench_crash", "garbage", "partial", "hang", "ok", "skipped"]
STATUSES: tuple[str, ...] = get_args(Status)
Value = bool | int | float | str | None
MOST_CELLS = 2_000


class BenchOptions(Strict):
    """What every cell is measured with."""

    concurrency: list[int] = Field(default=[1, 4, 8], min_length=1)
    max_tokens: int = Field(default=3072, ge=1)
    thinking: bool | None = None
    seed: int = 1
    requests: int | None = Field(default=None, ge=1, description="of a level; default: one per stream")
    warmup_tokens: int = Field(default=32, ge=0)


class CellLimits(Strict):
    """How long a cell may take; beyond it hangs."""

    switch_seconds: float = Field(default=5400, gt=0, description="from the served cell to this one's first answer")
    bench_seconds: float = Field(default=14400, gt=0)
    first_token_seconds: float = Field(default=600, gt=0)
    stall_seconds: float = Field(default=120, gt=0)


class Spec(Strict):
    name: str = Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,60}$")
    profile: str
    inventory: str | None = Field(default=None, description="inventory folder; default: inventories/gb10")
    group: str | None = Field(default=None, description="the group of the site's list that gets each cell in turn")
    axes: dict[str, list[Value]] = Field(min_length=1)
    excludes: list[dict[str, Value]] = Field(default=[])
    bench: BenchOptions = BenchOptions()
    limits: CellLimits = CellLimits()
    url: str | None = Field(
        default=None, description="where it is served; default: the endpoint that gateway.yml makes"
    )
    baseline: str | None = Field(default=None, description="folder with the cells of an earlier run, to compare with")
    note: str = ""

    @model_validator(mode="after")
    def _axes_are_settable(self) -> Spec:
        for name, values in self.axes.items():
            if name.partition(".")[0] not in {"launch", "env", "engine"} or "." not in name:
                raise ValueError(f"axes.{name} is no axis: write launch.*, env.* or engine.*, as `--set` takes them")
            if not values:
                raise ValueError(f"axes.{name} has no value")
            if len({_key(value) for value in values}) != len(values):
                raise ValueError(f"axes.{name} names a value twice")
        for number, exclude in enumerate(self.excludes):
            for name, value in exclude.items():
                if _key(value) not in {_key(known) for known in self.axes.get(name, [])}:
                    raise ValueError(f"excludes.{number} can never match: {name} = {value!r} is no value of an axis")
        return self


@dataclass(frozen=True, slots=True)
class Cell:
    """One configuration of the grid. `rules` says why it is skipped, `bounds` what memory allows at each level."""

    number: int
    id: str
    settings: dict[str, Value]
    rules: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    bounds: dict[int, float] = field(default_factory=dict)

    @property
    def skipped(self) -> bool:
        return bool(self.rules)

    @property
    def overrides(self) -> list[str]:
        """The settings as `--set` texts."""
        return [f"{name}={json.dumps(value)}" for name, value in self.settings.items()]


class Level(BaseModel):
    """One concurrency of a cell, as `sparkloom bench` writes it; what this page does not need is kept unread."""

    model_config = ConfigDict(extra="ignore", frozen=True)
    concurrency: int
    requests: int
    ok: int
    sum_tok_s: float | None = None
    at_once: int | None = None
    ttft_ms: dict[str, float | None] = Field(default={})
    accept_length: float | None = None
    guard: dict[str, Any] | str | None = None

    @property
    def speed(self) -> float | None:
        """Of as many requests as were answered at once: those that wait for their turn are not fast together."""
        if self.sum_tok_s is None or self.at_once is None:
            return self.sum_tok_s
        return self.sum_tok_s * min(1.0, self.at_once / self.concurrency)

    def garbage(self, bound: float | None) -> str:
        """Why its figures mean nothing, by the guard or by what memory bandwidth allows; empty where they do."""
        guard = self.guard if isinstance(self.guard, dict) else {"verdict": self.guard}
        if guard.get("verdict") == "garbage":
            return f"n={self.concurrency}: {guard.get('kind')}: {guard.get('why', '')}".rstrip(": ")
        if self.speed is not None and impossible(self.speed, bound):
            return f"n={self.concurrency}: {self.speed:.1f} tok/s; memory allows {bound:.1f}: not computed"
        return ""


class CellResult(BaseModel):
    """The JSON file of one cell: <id>.json."""

    model_config = ConfigDict(extra="ignore", frozen=True)
    id: str
    profile: str
    settings: dict[str, Value]
    status: Status
    levels: list[Level] = Field(default=[])
    matched_rules: list[str] = Field(default=[])
    trace_tail: str = ""
    telling: list[str] = Field(default=[], description="the lines that say most, where no rule knows them")
    note: str = ""
    started: str | None = None
    seconds: float | None = None
    provenance: dict[str, Any] = Field(default={})

    @model_validator(mode="after")
    def _measured_if_ok(self) -> CellResult:
        if self.status == "ok" and not self.levels:
            raise ValueError("status is ok and there are no levels: a cell without a measurement is not ok")
        return self


def load(path: Path) -> tuple[Spec, Document]:
    text = document.load(path)
    return document.validate(Spec, text), text


def cell_id(profile: str, settings: Mapping[str, Value]) -> str:
    """Ten characters that depend on what runs, not on its place in the grid."""
    content = json.dumps([Path(profile).stem, sorted(settings.items())], sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()[:10]


def combinations(spec: Spec) -> Iterator[dict[str, Value]]:
    """The cartesian product without what is excluded, the last axis turning fastest."""
    for values in itertools.product(*spec.axes.values()):
        settings = dict(zip(spec.axes, values, strict=True))
        if not any(all(_key(settings[k]) == _key(v) for k, v in exclude.items()) for exclude in spec.excludes):
            yield settings


def cells(spec: Spec, text: Document, *, try_known_bad: bool = False) -> list[Cell]:
    """Every cell, judged by the rules: what is known to fail is skipped unless asked for."""
    chosen = list(itertools.islice(combinations(spec), MOST_CELLS + 1))
    if not 0 < len(chosen) <= MOST_CELLS:
        what = "no cell is left" if not chosen else f"more than {MOST_CELLS} cells"
        raise InputError([text.problem(("axes",), f"{what}; change axes or excludes", "bad-grid")])
    inventory = Path(spec.inventory) if spec.inventory else None
    cluster = case.cluster(inventory)
    case.judge(spec.profile, cluster)  # a profile that cannot be used is the spec's mistake, not a cell's
    judged = [_cell(spec, cluster, number, settings, try_known_bad) for number, settings in enumerate(chosen, 1)]
    if all("invalid" in cell.rules for cell in judged):
        raise InputError([text.problem(("axes",), f"no cell can be launched: {judged[0].reasons[0]}", "bad-grid")])
    return judged


def _cell(spec: Spec, cluster: Any, number: int, settings: dict[str, Value], try_known_bad: bool) -> Cell:
    cell = Cell(number, cell_id(spec.profile, settings), settings)
    try:
        judged = case.judge(spec.profile, cluster, overrides=cell.overrides)
    except InputError as error:
        return replace(cell, rules=("invalid",), reasons=tuple(problem.message for problem in error.problems))
    computed = speed.Speed(judged.launch.view())
    cell = replace(cell, bounds={n: computed.bound(n) for n in spec.bench.concurrency})
    if try_known_bad or not judged.errors:
        return cell
    rules, reasons = zip(*((finding.rule, finding.message) for finding in judged.errors), strict=True)
    return replace(cell, rules=rules, reasons=reasons)


def read_results(folder: Path) -> dict[str, CellResult]:
    """The finished cells of a folder, by id. A file that is no cell is refused by name."""
    results, problems = dict[str, CellResult](), list[Problem]()
    for path in sorted(folder.glob("*.json")):
        try:
            read = Document(str(path), json_text.load(path, "expected a cell's result"))
            result = document.validate(CellResult, read)
        except InputError as error:
            problems += error.problems
        else:
            results[result.id] = result
    if problems:
        raise InputError(problems)
    return results


def _key(value: Value) -> tuple[str, Value]:
    """1, 1.0 and true are three values here."""
    return type(value).__name__, value


def differing(all_settings: Sequence[Mapping[str, Value]]) -> list[str]:
    """The axes that take more than one value: the others say nothing in a table."""
    names = list(dict.fromkeys(name for settings in all_settings for name in settings))
    return [n for n in names if len({_key(settings.get(n)) for settings in all_settings}) > 1] or names
