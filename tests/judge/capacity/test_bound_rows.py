"""Bound and ceiling against every measured row: no sane figure is beyond them, garbage that was too fast is doubted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cache

from sparkloom.inputs import profile
from sparkloom.inputs.profile import FlagValue, Model, Parallel
from sparkloom.judge import measured_rows
from sparkloom.judge.beyond import doubt, impossible
from sparkloom.judge.capacity.speed import Speed
from sparkloom.judge.measured_rows import Row
from sparkloom.launch.view import ModelView

LEVELS = (1, 4, 8, 16)


@cache
def models() -> dict[str, Model]:
    known = (profile.load(name).profile.model for name in profile.names())
    return {model.id: model for model in known}


def view(row: Row) -> ModelView | None:
    model = models().get(row["model"])
    if model is None:
        return None
    flags: dict[str, FlagValue] = {name: row[name] for name in ("kv_cache_dtype",) if row.get(name)}
    for name, value in (row.get("speculative") or {}).items():
        if value is not None:
            flags[f"speculative_{name}"] = value
    parallel = Parallel(nodes=row["nnodes"], tp=row["tp"], pp=row["pp"], ep=row["ep"])
    return ModelView("sglang", model=model, flags=flags).split(parallel)


def points(*outcomes: str) -> Iterator[tuple[Row, Speed, int, float]]:
    for row in measured_rows.shipped():
        asked = view(row) if row["outcome"] in outcomes else None
        if asked is None:
            continue
        bogus = (row.get("extra") or {}).get("bogus") or {}
        for n in LEVELS:
            value = row.get(f"n{n}") or bogus.get(f"n{n}")
            if value:
                yield row, Speed(asked), n, float(value)


def test_no_sane_row_beats_the_bound() -> None:
    seen: Counter[str] = Counter()
    for row, speed, n, value in points("ok"):
        assert not impossible(value, speed.bound(n)), (row["id"], n, value, speed.bound(n))
        seen[row["model"]] += 1
    assert sum(seen.values()) > 1000
    assert len(seen) >= 16


def test_every_model_with_a_figure_is_judged() -> None:
    with_figures = {row["model"] for row in measured_rows.shipped() if row["outcome"] == "ok" and row.get("n1")}
    assert with_figures <= set(models()), with_figures - set(models())


def test_garbage_above_the_ceiling_is_doubted() -> None:
    """Garbage wakes few experts: faster than expected, and not impossible by bytes alone. Its text decides."""
    above = [(row["id"], n, value) for row, speed, n, value in points("garbage") if doubt(value, speed.ceiling(n))]
    assert len(above) >= 2
    assert max(value for _, _, value in above) > 156
    assert all(n == 8 for _, n, _ in above)


def test_no_sane_row_is_above_the_ceiling() -> None:
    assert not [row["id"] for row, speed, n, value in points("ok") if doubt(value, speed.ceiling(n))]


def test_speculative_rows_are_among_them_and_keep_a_distance() -> None:
    """With speculation the bound assumes that every draft token is accepted: real runs stay under three quarters."""
    shares = [value / speed.bound(n) for row, speed, n, value in points("ok") if row.get("speculative")]
    assert len(shares) > 100
    assert max(shares) < 0.75
