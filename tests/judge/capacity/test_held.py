"""Flags that make stored weights thinner while they are loaded: what is held and read is what they leave."""

from __future__ import annotations

from sparkloom.inputs.profile import Model, Parallel
from sparkloom.judge.capacity.speed import Speed
from sparkloom.launch.memory import weights
from sparkloom.launch.memory.weights import held
from sparkloom.launch.view import ModelView
from tests.judge.capacity.conftest import QWEN, Maker
from tests.judge.capacity.test_published_runs import PUBLISHED

GEMMA = "google--gemma-4-31b-it"  # dense, stored as bf16
OSS = Model.model_validate(PUBLISHED["models"]["gpt-oss-120b"])


def oss(**flags: str) -> ModelView:
    return ModelView("vllm", model=OSS, flags=flags).split(Parallel(nodes=1, tp=1, pp=1, ep=1))


def test_weights_made_fp8_while_loaded_take_half_and_are_read_faster(view: Maker) -> None:
    stored, thinner = view(GEMMA), view(GEMMA, "quantization=fp8")
    assert held(thinner).precision.attention == "fp8" and held(thinner).precision.embedding == "bf16"
    assert 1.5 * Speed(stored).ceiling(1) < Speed(thinner).ceiling(1) < 2 * Speed(stored).ceiling(1)
    full, half = (weights.gib(held(asked), asked.parallel) for asked in (stored, thinner))
    assert 0.5 < half / full < 0.62


def test_what_is_thin_already_stays_as_it_is_stored(view: Maker) -> None:
    assert held(view(QWEN, "quantization=fp8")).precision == view(QWEN).model.precision


def test_the_answer_is_one_object_as_long_as_the_model_is(view: Maker) -> None:
    asked = view(GEMMA, "quantization=fp8")
    assert held(asked) is held(asked)


def test_a_fork_flag_names_the_layers_that_become_mxfp4() -> None:
    stored, thinner = oss(), oss(mxfp4_layers="moe,qkv,o,lm_head")
    assert held(stored) is OSS
    assert (held(thinner).precision.attention, held(thinner).precision.embedding) == ("mxfp4", "mxfp4")
    assert held(oss(mxfp4_layers="o")).precision.embedding == OSS.precision.embedding
    was, now = Speed(stored).predicted(1), Speed(thinner).predicted(1)
    assert was and now and now > 1.2 * was
