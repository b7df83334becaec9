"""Formulas on requests whose figures are known by hand."""

from __future__ import annotations

import json
from itertools import pairwise
from types import SimpleNamespace

import pytest

from sparkloom.base.errors import InputError
from sparkloom.measure.bench import figures, gauges, schedule, settings
from sparkloom.measure.bench.exchange import Exchange, Limits
from sparkloom.measure.bench.request import Request


def request(times: list[float], sizes: list[int] | None = None, tokens: int | None = None, **known: object) -> Request:
    one = Request(0, "p", b"", 0.0)
    one.sent, one.ended, one.finish = 1.0, times[-1] + 0.1 if times else 2.0, "stop"
    one.times.extend(times)
    one.sizes.extend(sizes or [4] * len(times))
    one.counted.extend([-1] * len(times))
    one.usage = {"completion_tokens": tokens} if tokens else None
    for name, value in known.items():
        setattr(one, name, value)
    return one


def test_one_token_a_chunk() -> None:
    one = request([1.2, 1.3, 1.4, 1.5], tokens=4)
    assert figures.decode(one, 4) == pytest.approx(10.0)
    assert figures.gaps(one, 4) == pytest.approx([0.1] * 3)
    row = figures.level([one], 99, streams=1, open_loop=False)
    assert row["ttft_ms"]["p50"] == pytest.approx(200) and row["itl_ms"]["mean"] == pytest.approx(100)
    assert (row["sum_tok_s"], row["wall_tok_s"], row["estimated"]) == (10.0, pytest.approx(4 / 0.6, abs=1e-3), False)


def test_bursts_are_counted_by_the_engine_s_number_not_by_chunks() -> None:
    one = request([1.2, 1.28, 1.36, 1.44], sizes=[16, 16, 16, 16], tokens=16)
    assert figures.first_tokens(one, 16) == 4
    assert figures.decode(one, 16) == pytest.approx(50.0)
    assert figures.gaps(one, 16) == pytest.approx([0.02] * 3)


def test_a_first_token_alone_and_bursts_behind_it() -> None:
    one = request([1.2, 1.28, 1.36, 1.44], sizes=[4, 16, 16, 16], tokens=13)
    assert figures.first_tokens(one, 13) == 1
    assert figures.decode(one, 13) == pytest.approx(50.0)


def test_counts_with_every_chunk_are_exact() -> None:
    one = request([1.0, 1.1, 1.4], tokens=6)
    one.counted = one.counted[:0] + type(one.counted)("l", [1, 2, 6])
    assert figures.gaps(one, 6) == pytest.approx([0.1, 0.075]) and figures.decode(one, 6) == pytest.approx(12.5)


@pytest.mark.parametrize(
    ("known", "expected"),
    [({"tokens": 9}, (9, "engine")), ({"finish": "length"}, (64, "limit")), ({"finish": "stop"}, (3, "chunks"))],
)
def test_where_a_count_comes_from_is_said(known: dict[str, object], expected: tuple[int, str]) -> None:
    assert figures.tokens(request([1.0, 1.1, 1.2], **known), 64) == expected  # type: ignore[arg-type]


def test_failed_requests_are_in_no_figure_and_rounds_do_not_add_up() -> None:
    good, bad = request([1.1, 1.2], tokens=2), request([1.1], tokens=1)
    bad.error = "cut"
    row = figures.level([good, bad, good, good], 9, streams=2, open_loop=False)
    assert (row["requests"], row["ok"], row["errors"]) == (4, 3, {"cut": 1})
    assert row["sum_tok_s"] == pytest.approx(3 * 10 / 2) and row["output_tokens"] == 6


def test_requests_that_wait_for_their_turn_are_not_fast_together() -> None:
    """SGLang itself with one request at a time made 24 tok/s, and the sum of three said 73."""
    queue = [request([at + 0.1, at + 0.2, at + 0.3], tokens=3) for at in (1.0, 2.0, 3.0)]
    row = figures.level(queue, 9, streams=3, open_loop=False, bound=12.0)
    assert (row["sum_tok_s"], row["at_once"], row["guard"]["verdict"]) == (pytest.approx(30.0), 1, "ok")
    together = figures.level([queue[0]] * 3, 9, streams=3, open_loop=False, bound=12.0)
    assert (together["at_once"], together["guard"]["kind"]) == (3, "impossible-speed")
    assert figures.level([], 9, streams=3, open_loop=False)["at_once"] is None


def test_the_open_loop_measures_from_the_intended_start() -> None:
    late = request([3.0, 3.1], tokens=2, intended=0.5)
    row = figures.level([late], 9, streams=1, open_loop=True)
    assert row["ttft_ms"]["mean"] == 2500 and row["sum_tok_s"] is None
    assert row["per_request"][0]["started_late_ms"] == 500


def test_percentiles_lie_between_neighbours() -> None:
    assert figures.spread([0.001, 0.002, 0.003, 0.004]) == {"mean": 2.5, "p50": 2.5, "p95": 3.85, "p99": 3.97}
    assert set(figures.spread([]).values()) == {None}


def test_arrivals_are_a_seeded_poisson_process() -> None:
    first, again, other = (list(schedule.arrivals(5.0, seed, 4000)) for seed in (1, 1, 2))
    assert first == again != other and first == sorted(first)
    assert first[-1] / 4000 == pytest.approx(0.2, rel=0.05)
    waits = [b - a for a, b in pairwise(first)]
    assert sum(wait > 0.2 for wait in waits) / len(waits) == pytest.approx(0.368, abs=0.03)  # exp(-1)


def test_garbage_in_one_request_is_garbage_of_the_level() -> None:
    rows = [{"number": n, "chunks": 3, "ok": True, "guard": {"verdict": "ok"}, "text_tail": "x"} for n in range(3)]
    assert figures.verdict(rows, None)["verdict"] == "ok"
    rows[1]["guard"] = {"verdict": "garbage", "kind": "loop", "at_chunk": 1, "at_char": 9, "why": "so"}
    assert figures.verdict(rows, None)["kind"] == "loop" and figures.verdict([], None)["verdict"] == "unknown"


PAGE = b"""# TYPE sglang:num_running_reqs gauge
sglang:num_running_reqs{tp_rank="0"} 3
sglang:num_running_reqs{tp_rank="1"} 2.0
sglang:num_running_reqs_other 99
sglang:token_usage{a="}"} 0.5
sglang:spec_accept_length NaN
vllm:generation_tokens_total{model_name="m"} 1.5e3
"""


def test_metrics_are_read_under_each_engine_s_names() -> None:
    assert gauges.read(PAGE) == {"running": 5, "cache_usage": 0.5, "generated": 1500}


def test_clock_and_temperature_stand_beside_the_figures_where_a_page_tells_them() -> None:
    nodes = [
        {"groups": [{}], "now": {"hertz": 1.9e9, "celsius": 71.0}},
        {"groups": [{}], "now": {"hertz": 2.4e9, "celsius": 84.0}},
        {"groups": [], "now": {"hertz": 2.1e8, "celsius": 38.0}},  # serves nothing
    ]
    pages = {"/metrics": PAGE, gauges.PAGE: json.dumps({"nodes": nodes}).encode()}
    target = SimpleNamespace(get=lambda path, *_: (200, pages[path]) if path in pages else (404, b""))
    looked = gauges.Gauges(target)  # type: ignore[arg-type]
    looked._before = looked._page()
    looked._during = [gauges.read(PAGE) | looked._gpus()]
    assert looked.end(0)["gpus"] == {"mhz": 1900.0, "celsius": 84.0}
    pages[gauges.PAGE] = b"<html>"
    assert looked._gpus() == {}, "an engine without a site"


@pytest.mark.parametrize("text", ["", "0", "1,,4", "1;4", "-1", "9999", "٤"])
def test_levels_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(InputError):
        settings.numbers("--concurrency", text)


def test_prompts_are_the_same_for_a_seed_and_differ_within_a_level() -> None:
    one, again, other = (settings.prompts(settings.PROMPTS, seed) for seed in (1, 1, 2))
    assert one == again and one.measured != other.measured and len(one.measured) >= 16
    assert len({one.pick(n)[0] for n in range(8)}) == 8 and one.pick(0, warmup=True) in one.warmup


def test_pings_do_not_hide_a_stall() -> None:
    one = request([1.0, 1.1], ended=0.0)
    exchange = Exchange(one, Limits(stall_s=2.0), lambda _: None)
    exchange.expired(3.0)
    assert not exchange.over
    exchange.expired(3.2)
    assert (one.error, one.detail) == ("stall", "nothing for 2 s after 2 chunks")
