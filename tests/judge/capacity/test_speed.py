"""Fifteen points of four models from their facts and two constants; sockets, speculation, pipelines."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from sparkloom.inputs.profile import Parallel
from sparkloom.judge.beyond import impossible
from sparkloom.judge.capacity import traffic
from sparkloom.judge.capacity.speed import Speed
from sparkloom.launch.memory import constants
from sparkloom.launch.view import LaunchView
from tests.judge.capacity.conftest import GLM, QWEN, SUPER, SUPER_MTP, ULTRA, Maker, make

# Sum of per-request tok/s at n = 1, 4, 8, as the posts report it.
MEASURED = {
    ULTRA: (10.1, 29.3, 43.2),
    SUPER: (31.67, 95.0, 146.3),
    QWEN: (21.5, 67.8, 102.0),
    f"{QWEN}--ep4": (21.43, 65.7, 98.5),
    GLM: (14.5, 40.6, 60.0),
}
POINTS = [(name, n, value) for name, values in MEASURED.items() for n, value in zip((1, 4, 8), values, strict=True)]


def predicted(asked: LaunchView, n: int) -> float:
    value = Speed(asked).predicted(n)
    assert value is not None
    return value


@pytest.mark.parametrize(("name", "n", "measured"), POINTS)
def test_each_point_within_15_percent_and_below_its_bound(view: Maker, name: str, n: int, measured: float) -> None:
    asked = view(name)
    assert predicted(asked, n) == pytest.approx(measured, rel=0.15)
    assert Speed(asked).bound(n) > Speed(asked).ceiling(n) * 0.999 and Speed(asked).ceiling(n) > measured


def test_all_points_within_8_percent_rms() -> None:
    errors = [predicted(make(name), n) / value - 1 for name, n, value in POINTS]
    assert math.sqrt(sum(error**2 for error in errors) / len(errors)) < 0.08


@pytest.mark.parametrize(("n", "measured"), [(1, 53.99), (4, 136.8), (8, 199.7)])
def test_speculation_through_the_accept_length(view: Maker, n: int, measured: float) -> None:
    assert predicted(view(SUPER_MTP), n) == pytest.approx(measured, rel=0.15)


def test_a_longer_draft_is_not_faster_at_eight(view: Maker) -> None:
    """More draft steps than three cost more than their tokens save: what the posts found."""
    shorter = view(SUPER_MTP)
    longer = view(SUPER_MTP, "speculative_num_steps=5", "speculative_num_draft_tokens=5")
    assert predicted(longer, 8) < predicted(shorter, 8)


def test_sockets_are_slower_and_only_when_asked_for(view: Maker) -> None:
    over_rails = view(QWEN)
    assert not over_rails.sockets
    over_tcp = replace(over_rails, env={"NCCL_NET": "Socket"})
    assert 1.4 < predicted(over_rails, 4) / predicted(over_tcp, 4) < 3
    assert Speed(over_tcp).bound(4) == Speed(over_rails).bound(4)


def test_more_requests_touch_more_experts_but_never_more_than_there_are() -> None:
    assert traffic.touched(512, 10, 1) == pytest.approx(10)
    assert traffic.touched(512, 10, 8) < 80
    assert traffic.touched(512, 10, 10_000) == pytest.approx(512)


def test_the_busiest_of_four_ranks_reads_more_than_a_quarter() -> None:
    assert traffic.busiest_share(22, 512, 1) == 22
    assert 22 / 4 < traffic.busiest_share(22, 512, 4) < 22
    assert traffic.busiest_share(512, 512, 4) == 128


def test_bound_grows_with_requests_and_falls_with_layers_on_one_rank(view: Maker) -> None:
    speeds = [Speed(view(ULTRA)).bound(n) for n in (1, 2, 4, 8, 16, 64)]
    assert speeds == sorted(speeds)


def test_a_pipeline_waits_for_every_stage(view: Maker) -> None:
    """One request uses one stage at a time: three stages are no faster than one node would be."""
    pipeline = view("nvidia--minimax-m2.5-nvfp4--pp3")
    assert Speed(pipeline).bound(1) < Speed(view("nvidia--minimax-m2.5-nvfp4--2node")).bound(1)
    assert Speed(pipeline).bound(3) > 2.5 * Speed(pipeline).bound(1)


def test_a_draft_model_of_unknown_size_gives_no_prediction(view: Maker) -> None:
    asked = view(SUPER_MTP)
    stranger = replace(asked, model=asked.model.model_copy(update={"mtp": None}))
    assert Speed(stranger).predicted(1) is None
    assert Speed(stranger).bound(1) >= Speed(asked).bound(1)


def test_impossible() -> None:
    assert impossible(156.4, 147.0)
    assert not impossible(149.0, 147.0)  # timing may be off by two per cent
    assert not impossible(98.5, 147.0)
    assert not impossible(98.5, None)


@pytest.mark.parametrize("name", [ULTRA, SUPER_MTP, QWEN, f"{QWEN}--ep4", "nvidia--minimax-m2.5-nvfp4--pp3"])
def test_the_ceiling_is_below_the_bound_and_falls_away_from_it(view: Maker, name: str) -> None:
    """A batch may choose the same experts: only one request's bytes are certain, so n requests are n times as fast."""
    speed = Speed(view(name))
    shares = [speed.ceiling(n) / speed.bound(n) for n in (1, 4, 8, 32)]
    assert shares == sorted(shares, reverse=True) and 0.3 < shares[0] <= 1.0
    assert speed.bound(8) == pytest.approx(8 * speed.bound(1))


def test_what_an_engine_makes_thinner_at_load_lifts_the_bound(view: Maker) -> None:
    plain = view("google--gemma-4-31b-it")
    thin = replace(plain, flags={**plain.flags, "quantization": "fp8"})
    assert plain.model.checkpoint.packing == "bf16"
    assert Speed(thin).bound(1) == pytest.approx(2 * Speed(plain).bound(1), rel=0.02)
    packed = view(QWEN)  # its flag names how the checkpoint is stored, and changes nothing
    assert Speed(replace(packed, flags={**packed.flags, "quantization": "modelopt_fp4"})).bound(1) == pytest.approx(
        Speed(packed).bound(1)
    )


def test_an_all_reduce_takes_longer_between_more_sparks_and_for_more_bytes(view: Maker) -> None:
    times = [constants.all_reduce_s(ranks) for ranks in range(1, 9)]
    assert times[0] == 0 and times == sorted(times) and len(set(times)) == len(times)
    # the two measurements that start and hop were solved from
    assert constants.all_reduce_s(2, 40e3) == pytest.approx(38e-6, rel=0.03)
    assert constants.all_reduce_s(4, 48e3) == pytest.approx(59e-6, rel=0.03)
    # nine parts of ten of a gigabyte's time are its way over the rail
    assert constants.all_reduce_s(4, 1e9) == pytest.approx(1.5 / 9.78, rel=0.1)
    assert constants.all_reduce_s(4, sockets=True) == pytest.approx(490e-6)
    assert "126 all-reduces x 34 us (2 Sparks)" in Speed(view("nvidia--minimax-m2.5-nvfp4--2node")).formula()
    assert "122 all-reduces x 53 us (4 Sparks)" in Speed(view(QWEN)).formula(1)
    assert "122 all-reduces x 61 us (4 Sparks)" in Speed(view(QWEN)).formula(8)


def test_one_spark_waits_for_nobody(view: Maker) -> None:
    one = Speed(view("nvidia--nemotron-3-super-120b-a12b-nvfp4--vllm-1node"))
    assert traffic.collectives(one.view) == 0 and "all-reduce" not in one.formula()
    assert "88 layers x 72 us" in one.formula()


@pytest.mark.parametrize("name", [ULTRA, SUPER_MTP, QWEN, "nvidia--minimax-m2.5-nvfp4--pp3"])
def test_the_interval_holds_the_prediction_and_ends_at_the_bound(view: Maker, name: str) -> None:
    speed = Speed(view(name))
    for n in (1, 4, 8):
        span = speed.interval(n)
        assert span is not None
        assert span[0] < predicted(speed.view, n) < span[1] <= speed.bound(n)


def test_what_nobody_measured_widens_the_interval(view: Maker) -> None:
    """Prompts that may be alike, an assumed accept length, a pipeline, no graphs, a count of Sparks without a run."""

    def width(asked: LaunchView, n: int = 1) -> float:
        span = Speed(asked).interval(n)
        assert span is not None
        return span[1] / span[0]

    assert width(view(QWEN)) == pytest.approx(1.25**2)
    assert width(view(QWEN), 8) > 1.2 * width(view(QWEN))
    assert width(view(f"{QWEN}--mtp")) > 1.3 * width(view(SUPER_MTP))
    assert width(view(QWEN, "disable_cuda_graph=true")) > 1.4 * width(view(QWEN))
    assert width(view("nvidia--minimax-m2.5-nvfp4--pp3")) > 2 * width(view(QWEN))
    assert width(view(QWEN).split(Parallel(nodes=8, tp=8))) > 1.3 * width(view(QWEN))
