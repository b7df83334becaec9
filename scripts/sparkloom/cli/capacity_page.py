"""docs/capacity.md: how the figures are made, and how far they are from what was measured.

python -m sparkloom.cli.capacity_page > docs/capacity.md
"""

from __future__ import annotations

import datetime
import math
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from sparkloom.inputs import cluster, inventory, profile
from sparkloom.inputs.profile import LoadedProfile, Measured
from sparkloom.judge import profile_status
from sparkloom.judge.beyond import impossible
from sparkloom.judge.capacity import traffic
from sparkloom.judge.capacity.speed import LEVELS, Speed
from sparkloom.launch import resolve
from sparkloom.launch.engines import fit
from sparkloom.launch.memory import constants
from sparkloom.launch.view import LaunchView

# The launches whose 15 points the two constants were fitted to; every other one is a test of them.
FITTED = (
    "nvidia--nemotron-3-ultra-550b-a55b-nvfp4",
    "nvidia--nemotron-3-super-120b-a12b-nvfp4--nospec",
    "nvidia--qwen3.5-397b-a17b-nvfp4",
    "nvidia--qwen3.5-397b-a17b-nvfp4--ep4",
    "nvidia--glm-4.7-nvfp4",
)
TEMPLATE = Path(__file__).with_name("capacity_page.md")


@dataclass(frozen=True, slots=True)
class Point:
    profile: str
    n: int
    gb: float
    bound: float
    ceiling: float
    predicted: float | None
    measured: float

    @property
    def error(self) -> float | None:
        return None if self.predicted is None else self.predicted / self.measured - 1

    def row(self) -> str:
        predicted = "unknown" if self.predicted is None else f"{self.predicted:.1f}"
        error = "" if self.error is None else f"{100 * self.error:+.1f} %"
        mark = " (impossible)" if impossible(self.measured, self.bound) else ""
        cells = (self.profile, str(self.n), f"{self.gb:.1f}", f"{self.bound:.1f}", f"{self.ceiling:.1f}", predicted)
        return "| " + " | ".join((*cells, f"{self.measured:.1f}{mark}", error)) + " |"


def points(names: Iterator[str] | tuple[str, ...]) -> Iterator[Point]:
    """Every measured level of the profiles, beside what its facts say."""
    sparks = inventory.load()
    for name in names:
        loaded = profile.load(name)
        best = profile_status.best_evidence(loaded.profile)
        if best is None or best.status != "measured" or best.numbers is None:
            continue
        speed = Speed(_facts(loaded, sparks).as_measured(best))
        for n in LEVELS:
            value = getattr(best.numbers, f"n{n}")
            if value:
                gb = traffic.step_bytes(speed.view, speed.needs, n / speed.view.parallel.pp) / 1e9
                yield Point(name, n, gb, speed.bound(n), speed.ceiling(n), speed.predicted(n), value)


def _facts(loaded: LoadedProfile, sparks: cluster.Cluster) -> LaunchView:
    """Without the measured weights: nothing on this page leans on what it is compared with."""
    view = resolve.resolve(loaded, sparks).view()
    return replace(view, profiled=view.model.model_copy(update={"measured": Measured()}))


def rms(points: list[Point]) -> float:
    errors = [point.error for point in points if point.error is not None]
    return math.sqrt(sum(error**2 for error in errors) / len(errors)) if errors else 0.0


def table(points: list[Point]) -> str:
    head = "| profile | n | GB per step and rank | bound | ceiling | predicted | measured | error |\n"
    head += "|--|--|--|--|--|--|--|--|\n"
    return head + "\n".join(point.row() for point in points)


def weighed() -> str:
    """Computed beside logged weights, once per model."""
    rows, seen, sparks = [], set(), inventory.load()
    for name in profile.names():
        loaded = profile.load(name)
        given = loaded.profile
        for split, logged in given.model.measured.weights_gib_per_rank.items():
            parallel = given.launch.parallel
            if split != f"tp{parallel.tp}-ep{parallel.ep}" or given.model.id in seen:
                continue
            seen.add(given.model.id)
            computed = float(fit(_facts(loaded, sparks)).memory["weights_gib_per_rank"].value or 0)
            rows.append(
                f"| {given.model.id} | {split} | {computed:.1f} | {logged:.1f} | {computed / logged - 1:+.1%} |"
            )
    return "| model | split | computed GiB | logged GiB | error |\n|--|--|--|--|--|\n" + "\n".join(rows)


def constant_rows() -> str:
    listed = (
        ("share of the bandwidth", constants.BANDWIDTH_SHARE),
        ("one all-reduce of four, RoCE (s)", constants.ALL_REDUCE_S),
        ("one all-reduce of two, RoCE (s)", constants.ALL_REDUCE_TWO_S),
        ("one all-reduce of four, sockets (s)", constants.ALL_REDUCE_SOCKET_S),
        ("taken before the load, four nodes (GiB)", constants.TAKEN_BEFORE_LOAD_GIB),
        ("taken before the load, one node (GiB)", constants.BARE_HOST_GIB),
        ("taken before the load, idle nodes at best (GiB)", constants.BEST_SEEN_GIB),
        ("overhead of loading, quantized (GiB)", constants.LOAD_OVERHEAD_GIB),
        ("overhead of loading, BF16 (GiB)", constants.LOAD_OVERHEAD_PLAIN_GIB),
        ("CUDA graphs (GiB)", constants.GRAPHS_GIB),
        ("left for the host (GiB)", constants.HOST_FLOOR_GIB),
        ("context per running request (tokens)", constants.LIVE_TOKENS),
        ("acceptance of one more draft token", constants.ACCEPTANCE),
    )
    rows = [f"| {name} | {figure.value:g} | {figure.formula} | {figure.origin} |" for name, figure in listed]
    return "| constant | value | what it is | from |\n|--|--|--|--|\n" + "\n".join(rows)


def body() -> str:
    """The page without its stamp: the same for the same profiles and code."""
    fitted = list(points(FITTED))
    others = list(points(tuple(name for name in profile.names() if name not in FITTED)))
    worst = max((abs(point.error) for point in fitted if point.error is not None), default=0.0)
    return TEMPLATE.read_text(encoding="utf-8").format(
        constants=constant_rows(),
        fitted=table(fitted),
        count=len(fitted),
        rms=f"{100 * rms(fitted):.1f} %",
        worst=f"{100 * worst:.1f} %",
        others=table(others),
        others_count=len(others),
        others_rms=f"{100 * rms(others):.1f} %",
        weights=weighed(),
    )


def stamp() -> str:
    today = datetime.datetime.now(tz=datetime.UTC).date()
    asked = ["git", "-C", str(TEMPLATE.parent), "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip() or "unknown"
    return f"*Generated {today} at commit {commit} by `python -m sparkloom.cli.capacity_page > docs/capacity.md`.*\n"


if __name__ == "__main__":
    text = body()
    title, _, rest = text.partition("\n")
    sys.stdout.write(f"{title}\n\n{stamp()}{rest}")
