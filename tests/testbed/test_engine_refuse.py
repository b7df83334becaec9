"""What the stand-in refuses after the parser, by release; the words are looked up in the release's own source."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from scripts.oracle import fetch
from tests.testbed.standin import Speculation, config, facts, refuse

HYBRID = facts.Facts(architecture="Qwen3_5MoeForConditionalGeneration", context=262144, kv_heads=2, hybrid=True)
NEMOTRON = facts.Facts(architecture="NemotronHForCausalLM", context=262144, kv_heads=2, hybrid=True)
GLM = facts.Facts(architecture="Glm4MoeForCausalLM", context=202752, kv_heads=8)
GEMMA = facts.Facts(architecture="Gemma4ForConditionalGeneration", context=262144, kv_heads=8)
MTP = Speculation("NEXTN", 3, 4, 1)
STRATEGY = "mamba_scheduler_strategy"


def words(release: str, model: Any, environ: dict[str, str] | None = None, **settings: Any) -> str | None:
    settings = {"quantization": "modelopt_fp4", "tp": 4, "nnodes": 4, "attention": "flashinfer", **settings}
    try:
        refuse.settle(config(release=release, **settings), model, environ or {})
    except refuse.Refusal as refusal:
        return str(refusal)
    return None


# (id, refused releases, accepted releases, model, settings, piece of the engine's own message)
CASES: list[tuple[Any, ...]] = [
    ("speculation with the radix cache", "0.5.10 0.5.12 0.5.13", "0.5.14 0.5.19", HYBRID,
     {"speculation": MTP}, "is not compatible with radix cache when using --mamba-scheduler-strategy no_buffer."),
    ("extra buffer on NemotronH", "0.5.10 0.5.12 0.5.12.post1", "0.5.13", NEMOTRON,
     {"values": {STRATEGY: "extra_buffer"}}, "mamba extra_buffer is not supported for"),
    ("extra buffer without the radix cache", "0.5.10 0.5.12 0.5.13", "", HYBRID,
     {"values": {STRATEGY: "extra_buffer", "disable_radix_cache": True}},
     "mamba extra_buffer is not compatible with --disable-radix-cache"),
    ("NemotronH and triton attention", "0.5.10 0.5.12 0.5.14", "0.5.19", NEMOTRON,
     {"attention": "triton"}, "NemotronHForCausalLM does not support triton attention backend,"),
    ("Gemma 4 and flashinfer attention", "0.5.13 0.5.14", "0.5.11 0.5.12", GEMMA,
     {}, "Gemma4 only supports trtllm_mha, triton, or intel_xpu attention backend, "),
    ("experts over some of the ranks", "0.5.10 0.5.12 0.5.19", "", NEMOTRON,
     {"moe": "flashinfer_cutlass", "ep": 2},
     "The expert parallel size must be 1 or the same as the tensor parallel size"),
    ("a packing that the runner does not take", "0.5.10 0.5.12 0.5.19", "", GLM,
     {"moe": "flashinfer_cutlass", "quantization": "compressed-tensors"},
     "FlashInfer Cutlass MOE supports only: 'modelopt_fp4', 'modelopt_fp8', 'modelopt_mixed', or bfloat16 (None)."),
    ("ranks that do not divide", "0.5.10 0.5.12 0.5.19", "", GLM,
     {"tp": 3}, "tp_size must be divisible by number of nodes"),
    ("data parallel over nodes", "0.5.10 0.5.12 0.5.19", "", GLM,
     {"dp": 2}, "multi-node data parallel is not supported unless dp attention!"),
    ("stages with speculation", "0.5.10 0.5.12", "", GLM, {"pp": 4, "tp": 1, "speculation": MTP},
     "Pipeline parallelism is not compatible with overlap schedule, speculative decoding"),
    ("more context than the model has", "0.5.10 0.5.12 0.5.19", "", GLM,
     {"context": 524288}, "This may lead to incorrect model outputs or CUDA errors."),
]  # fmt: skip


def _source(release: str) -> str:
    folder = fetch.release_dir("sglang", release) / "sglang/srt"
    places = [folder / "server_args.py", folder / "configs/model_config.py", *(folder / "arg_groups").glob("*.py")]
    return "\n".join(path.read_text() for path in places if path.is_file())


@pytest.mark.parametrize("case", CASES, ids=[case[0] for case in CASES])
def test_refused_and_accepted_by_release_in_the_engines_words(case: tuple[Any, ...]) -> None:
    _, refused, accepted, model, settings, piece = case
    for release in refused.split():
        found = words(release, model, **settings)
        assert found and piece in found, release
        if fetch.is_fetched("sglang", release):
            assert piece in _source(release), f"{release} has no such message"
    for release in accepted.split():
        assert words(release, model, **settings) is None, release


def test_an_image_that_carries_the_change_speculates_with_the_radix_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STANDIN_CARRIES", "sglang#24955 sglang#27998")
    assert words("0.5.13", NEMOTRON, speculation=MTP) is None
    monkeypatch.setenv("STANDIN_CARRIES", "sglang#24955")
    assert words("0.5.13", NEMOTRON, speculation=MTP)


def test_a_missing_topk_is_the_type_error_that_the_posts_lines_meet() -> None:
    assert words("0.5.10", GLM, speculation=Speculation("NEXTN", 3, 4)) == (
        "TypeError: '>' not supported between instances of 'NoneType' and 'int'"
    )
    assert words("0.5.10", GLM, speculation=MTP) is None


def test_draft_tokens_are_corrected_with_a_warning() -> None:
    fixed, warnings = refuse.settle(config(speculation=Speculation("EAGLE", 5, 5, 1)), GLM, {})
    assert fixed.speculation.draft_tokens == 6
    assert any("adjusted to speculative_num_steps + 1" in text for text in warnings)


def test_more_context_is_taken_with_an_override_or_the_variable() -> None:
    more = {"context": 524288, "tp": 4}
    assert words("0.5.12", NEMOTRON, **more)
    override = {"json_model_override_args": '{"max_position_embeddings": 524288}'}
    assert words("0.5.12", NEMOTRON, values=override, **more) is None
    assert words("0.5.12", NEMOTRON, {refuse.OVERWRITE: "1"}, **more) is None
    assert words("0.5.12", NEMOTRON, {refuse.OVERWRITE: "on"}, **more)  # no word that the engine knows
    bad = words("0.5.12", NEMOTRON, values={"json_model_override_args": "{max_position_embeddings:524288}"}, **more)
    assert bad and bad.startswith("json.decoder.JSONDecodeError: Expecting property name")


def test_a_boolean_that_sglang_cannot_read_is_warned_of() -> None:
    _, warnings = refuse.settle(config(), GLM, {"SGLANG_ENABLE_JIT_DEEPGEMM": "off"})
    assert any('"off" is not a valid boolean value, using default "True"' in text for text in warnings)


def test_other_engines_refuse_more_context_too() -> None:
    asked = {"context": 1_000_000, "tp": 1, "nnodes": 1}
    for engine, variable in (("vllm", "VLLM_ALLOW_LONG_MAX_MODEL_LEN"), ("trtllm", "TLLM_ALLOW_LONG_MAX_MODEL_LEN")):
        with pytest.raises(refuse.Refusal, match="1000000"):
            refuse.settle(config(engine, **asked), NEMOTRON, {})
        refuse.settle(config(engine, **asked), NEMOTRON, {variable: "1"})


def test_config_json_in_the_weights_folder_goes_before_what_was_baked_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot = tmp_path / "models--nvidia--GLM-4.7-NVFP4/snapshots/abc"
    snapshot.mkdir(parents=True)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    baked = facts.of("nvidia/GLM-4.7-NVFP4")
    (snapshot / "config.json").write_text(
        '{"architectures": ["Other"], "max_position_embeddings": 77, "num_key_value_heads": 3}'
    )
    found = facts.of("nvidia/GLM-4.7-NVFP4")
    assert not baked.present and re.match("Glm4", baked.architecture or "")
    assert (found.present, found.architecture, found.context, found.kv_heads) == (True, "Other", 77, 3)
