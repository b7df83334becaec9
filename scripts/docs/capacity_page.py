"""docs/capacity.md says how the figures are made, docs/reference/predictions.md how far they are from measured ones.

python -m scripts.docs.capacity_page > docs/capacity.md
python -m scripts.docs.capacity_page predictions > docs/reference/predictions.md
"""

from __future__ import annotations

import datetime
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from scripts.docs import accuracy
from scripts.docs.accuracy import Point
from sparkloom.inputs import profile
from sparkloom.inputs.platform import GB10
from sparkloom.judge.beyond import impossible
from sparkloom.launch.engines import fit
from sparkloom.launch.memory import constants

TEMPLATE = Path(__file__).with_name("capacity_page.md")
PREDICTIONS = Path(__file__).with_name("predictions_page.md")


def row(point: Point) -> str:
    bound, predicted = point.speed.bound(point.requests), point.predicted
    told = "unknown" if predicted is None else f"{predicted:.1f}"
    error = "" if point.error is None else f"{100 * point.error:+.1f} %"
    mark = " (impossible)" if impossible(point.measured, bound) else ""
    figures = (f"{value:.1f}" for value in (point.gb, bound, point.speed.ceiling(point.requests)))
    cells = (
        point.name,
        str(point.nodes),
        f"{point.requests:.3g}",
        *figures,
        told,
        f"{point.measured:.1f}{mark}",
        error,
    )
    return "| " + " | ".join(cells) + " |"


def table(points: Iterable[Point]) -> str:
    head = "| profile or run | Sparks | n | GB per step and rank | bound | ceiling | predicted | measured | error |\n"
    return head + "|--|--|--|--|--|--|--|--|--|\n" + "\n".join(map(row, points))


def summary(points: tuple[Point, ...]) -> str:
    rows = ["| Sparks | fitted points | rms | held-out points | rms | worst |", "|--|--|--|--|--|--|"]
    known = [point for point in points if point.error is not None]
    for nodes in sorted({point.nodes for point in known}):
        fitted = [point for point in known if point.nodes == nodes and point.fitted]
        others = [point for point in known if point.nodes == nodes and not point.fitted]
        worst = max((abs(point.error or 0) for point in others), default=0.0)
        cells = [str(nodes), str(len(fitted)), _percent(accuracy.rms(fitted)) if fitted else ""]
        cells += [str(len(others)), f"**{_percent(accuracy.rms(others))}**" if others else "", _percent(worst)]
        rows.append("| " + " | ".join(cells) + " |")
    return "\n".join(rows)


def _percent(value: float) -> str:
    return f"{100 * value:.1f} %"


def first_tokens() -> str:
    points = accuracy.first_tokens()
    kinds = ((True, "fitted"), (False, "held-out"))
    chosen = ((kind, [point for point in points if point.fitted is fitted]) for fitted, kind in kinds)
    return ", ".join(f"{len(group)} {kind} points, {_percent(accuracy.rms(group))} rms" for kind, group in chosen)


def exchanges() -> str:
    sizes = (8, 64, 512)
    times = ((n, *(1e6 * constants.all_reduce_s(n, kib * 1024) for kib in sizes)) for n in (2, 3, 4, 8))
    return "\n".join(f"| {n} | " + " | ".join(f"{time:.0f}" for time in each) + " |" for n, *each in times)


def weighed() -> str:
    """Computed beside logged weights, once per model."""
    rows, seen = [], set()
    for name in profile.names():
        loaded = profile.load(name)
        given = loaded.profile
        for split, logged in given.model.measured.weights_gib_per_rank.items():
            parallel = given.launch.parallel
            if split != f"tp{parallel.tp}-ep{parallel.ep}" or given.model.id in seen:
                continue
            seen.add(given.model.id)
            computed = float(fit(accuracy.facts(loaded)).memory["weights_gib_per_rank"].value or 0)
            rows.append(
                f"| {given.model.id} | {split} | {computed:.1f} | {logged:.1f} | {computed / logged - 1:+.1%} |"
            )
    return "| model | split | computed GiB | logged GiB | error |\n|--|--|--|--|--|\n" + "\n".join(rows)


def constant_rows() -> str:
    listed = (
        ("share of the bandwidth", constants.BANDWIDTH_SHARE),
        ("a layer beside its bytes (s)", constants.LAYER_S),
        ("a prompt's matrices in BF16 (1/s)", constants.BF16_FLOPS),
        ("a prompt's attention (1/s)", constants.ATTENTION_FLOPS),
        ("kernels that unpack", constants.UNPACKED),
        ("start of an all-reduce (s)", constants.ALL_REDUCE_START_S),
        ("a hop of an all-reduce (s)", constants.ALL_REDUCE_HOP_S),
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
    points = accuracy.points()
    micro = {name: f"{1e6 * figure.number:.3g}" for name, figure in _TIMES.items()}
    return TEMPLATE.read_text(encoding="utf-8").format(
        constants=constant_rows(),
        summary=summary(points),
        exchanges=exchanges(),
        share=constants.BANDWIDTH_SHARE.value,
        spread=constants.SPREAD.value,
        prefill_spread=constants.PREFILL_SPREAD.value,
        flops=f"{constants.BF16_FLOPS.number / 1e12:g}",
        attention=f"{constants.ATTENTION_FLOPS.number / 1e12:g}",
        unpacked=constants.UNPACKED.value,
        first_tokens=first_tokens(),
        rail=GB10.rail_gb_s,
        **micro,
    )


def predictions() -> str:
    """Every point, without the stamp."""
    points = accuracy.points()
    return PREDICTIONS.read_text(encoding="utf-8").format(
        fitted=table(point for point in points if point.fitted),
        others=table(point for point in points if not point.fitted),
        weights=weighed(),
    )


_TIMES = {
    "layer": constants.LAYER_S,
    "start": constants.ALL_REDUCE_START_S,
    "hop": constants.ALL_REDUCE_HOP_S,
}


def stamp(page: str) -> str:
    today = datetime.datetime.now(tz=datetime.UTC).date()
    asked = ["git", "-C", str(TEMPLATE.parent), "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip() or "unknown"
    return f"*Generated {today} at commit {commit} by `python -m scripts.docs.capacity_page {page}`.*\n"


if __name__ == "__main__":
    points_too = sys.argv[1:] == ["predictions"]
    title, _, rest = (predictions() if points_too else body()).partition("\n")
    page = "predictions > docs/reference/predictions.md" if points_too else "> docs/capacity.md"
    sys.stdout.write(f"{title}\n\n{stamp(page)}{rest}")
