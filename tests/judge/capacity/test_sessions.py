"""So many agents at such a depth: room, time to the first token, and what is worth serving for them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from scripts.docs import accuracy, speed_rows
from sparkloom import case
from sparkloom.base.amount import tokens
from sparkloom.inputs.profile import Draft, Indexer
from sparkloom.judge.capacity.prefill import Prefill
from sparkloom.judge.capacity.speed import Speed
from sparkloom.judge.capacity.verdict import Asked, sessions
from sparkloom.launch.engines import fit
from tests.judge.capacity.conftest import QWEN, SUPER, ULTRA, Maker

MINIMAX = "nvidia--minimax-m2.5-nvfp4--2node"
HELD_OUT = [point for point in accuracy.first_tokens() if not point.fitted]


@pytest.mark.parametrize(
    ("text", "amount"), [("4096", 4096), ("128k", 131072), ("150K", 153600), ("1M", 1048576), ("1.5k", 1536)]
)
def test_tokens_as_people_write_them(text: str, amount: int) -> None:
    assert tokens(text) == amount


@pytest.mark.parametrize("text", ["", "0", "k", "12q", "-4k", "1e9", "99999999999", "4 k k"])
def test_what_is_no_number_of_tokens_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="write 4096, 128k or 1M"):
        tokens(text)


def test_first_tokens_that_were_held_out() -> None:
    """Prefill is compute, and kernels differ more than memory does: a quarter rms, nine of ten within the interval."""
    assert len(HELD_OUT) > 45
    assert accuracy.rms(HELD_OUT) <= 0.30
    spans = [(point.prefill.interval(point.tokens), point.measured) for point in HELD_OUT]
    assert sum(low <= measured <= high for (low, high), measured in spans) >= 0.9 * len(spans)


def test_a_prompt_takes_longer_the_longer_it_is_and_the_deeper_it_begins(view: Maker) -> None:
    prefill = Prefill(view(QWEN))
    times = [prefill.seconds(length) for length in (1, 1000, 8192, 8193, 100_000)]
    assert times == sorted(times) and times[0] > 0 and prefill.seconds(0) == 0
    assert prefill.seconds(10_000, before=100_000) > prefill.seconds(10_000)
    assert prefill.seconds(110_000) == pytest.approx(
        prefill.seconds(98_304) + prefill.seconds(11_696, before=98_304), rel=1e-6
    )


def test_what_is_summed_between_sparks_is_part_of_a_prompt(view: Maker) -> None:
    one, asked = Prefill(view(QWEN)), view(QWEN)
    slow = Prefill(replace(asked, env={"NCCL_NET": "Socket"}))
    assert slow.seconds(8192) > one.seconds(8192)
    summed = 122 * 1.5 * 8192 * 4096 * 2 / 9.78e9
    assert one.seconds(8192) > summed


def test_unpacking_kernels_are_slower(view: Maker) -> None:
    asked = view("qwen--qwen3.6-27b-fp8")
    marlin = replace(asked, engine="vllm", flags={"linear_backend": "marlin"})
    native = replace(asked, engine="vllm", flags={})
    assert Prefill(marlin).seconds(8192) > 1.4 * Prefill(native).seconds(8192)


def test_room_is_by_the_cache_or_by_what_may_run(view: Maker) -> None:
    few = sessions(view(MINIMAX), Asked(6, tokens("150k"), 0.9))
    assert few["verdict"] == "does-not-fit" and few["room"] == 1 and "by the cache" in few["reason"]
    assert sessions(view(MINIMAX), Asked(1, tokens("150k")))["verdict"] == "fits"
    states = sessions(view(ULTRA), Asked(17, 4096))
    assert states["verdict"] == "does-not-fit" and "by running requests" in states["reason"]


def test_a_cached_prefix_saves_time_not_room(view: Maker) -> None:
    cold, warm = (sessions(view(SUPER), Asked(6, tokens("64k"), hit)) for hit in (0.0, 0.9))
    assert cold["room"] == warm["room"] and cold["verdict"] == warm["verdict"] == "fits"
    first = warm["first_token_s"]
    assert "warm" not in cold["first_token_s"]
    assert first["warm"][1] < 0.3 * first["cold"][1]
    assert first["cold_last_of_all"][0] == pytest.approx(6 * first["cold"][0], rel=0.02)
    assert first["cold"][0] < first["cold"][1]


def test_a_longer_conversation_than_the_launch_allows_says_which_flag(view: Maker) -> None:
    told = sessions(view(ULTRA, "context_length=65536"), Asked(1, tokens("128k")))
    assert told["notes"] == ["context_length is 65,536 in this launch: set it to 131,072"]
    assert fit(view(ULTRA, "context_length=131072")).fits is True and told["verdict"] == "fits"


def ranked(**asked: Any) -> list[dict[str, Any]]:
    nodes = asked.pop("nodes", None)
    return case.ranking(asked=Asked(**asked), nodes=nodes)


def test_measured_before_predicted_each_from_fast_to_slow() -> None:
    listed = ranked(count=8, context=tokens("32k"))
    sure = [entry for entry in listed if entry["verdict"] == "fits"]
    assert listed[: len(sure)] == sure and len(sure) >= 10
    measured = [entry["measured_tok_s"] for entry in sure if entry["measured_tok_s"]]
    assert measured == sorted(measured, reverse=True)
    assert [bool(entry["measured_tok_s"]) for entry in sure] == sorted(
        (bool(entry["measured_tok_s"]) for entry in sure), reverse=True
    )
    assert all(entry["room"] >= 8 for entry in sure)


def test_only_what_so_few_sparks_can_serve() -> None:
    two = ranked(count=1, context=tokens("32k"), nodes=2)
    assert two and all(entry["nodes"] <= 2 for entry in two)
    assert ranked(count=4000, context=tokens("1M")) == []


def test_rows_with_a_first_token_are_of_one_and_two_sparks() -> None:
    assert {row.nodes for row in speed_rows.shipped() if row.ttft_s} == {1, 2}


def test_an_indexer_bounds_what_a_sparse_layer_looks_back_at(view: Maker) -> None:
    asked = view(QWEN)
    layers = asked.model.layers
    chooser = Indexer(heads=64, head_dim=128, top_k=2048)
    sparse = asked.model.model_copy(
        update={
            "layers": layers.model_copy(update={"attention": 0, "sparse": layers.attention}),
            "attention": asked.model.attention.model_copy(update={"indexer": chooser}),
        }
    )
    chosen = Prefill(replace(asked, model=sparse))
    deep, shallow = ((p.seconds(8192, before=500_000), p.seconds(8192)) for p in (Prefill(asked), chosen))
    assert shallow[0] < deep[0]  # half a million tokens back, only the indexer looks at all of them
    assert chosen.seconds(8192) == pytest.approx(Prefill(asked).seconds(8192), rel=0.2)


def test_a_draft_model_of_known_size_can_be_predicted(view: Maker) -> None:
    asked = view(QWEN)
    flags = {"speculative_algorithm": "DFLASH", "speculative_num_steps": 7, "speculative_num_draft_tokens": 8}
    known = asked.model.model_copy(update={"mtp": None, "draft": Draft(id="z-lab/a-draft", size_gb=3.0)})
    at_once = Speed(replace(asked, model=known, flags={**asked.flags, **flags}))
    step_by_step = Speed(replace(asked, model=known, flags={**flags, "speculative_algorithm": "EAGLE3"}))
    one, seven = at_once.predicted(1), step_by_step.predicted(1)
    assert one and seven and one > seven
    unknown = known.model_copy(update={"draft": Draft(id="z-lab/a-draft")})
    assert Speed(replace(asked, model=unknown, flags=flags)).predicted(1) is None
