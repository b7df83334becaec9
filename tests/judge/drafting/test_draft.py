"""Profiles drafted from public models' own files: they load, no rule refuses them, and they say what they are."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from sparkloom.base.errors import InputError
from sparkloom.inputs import inventory
from sparkloom.inputs import profile as profiles
from sparkloom.inputs.checkpoint import as_model, reading
from sparkloom.inputs.platform import GB10
from sparkloom.judge import profile_status
from sparkloom.judge.drafting import comparing, draft, placement
from sparkloom.judge.drafting.draft import Draft
from tests.public_models import folder

# One of each family, and the ones that people run on Sparks.
DRAFTED = (
    "Qwen--Qwen3.5-27B", "Qwen--Qwen3.8-Flash-Next", "deepseek-ai--DeepSeek-V4-Flash",
    "deepseek-ai--DeepSeek-V4.1-Flash", "google--gemma-4-26B-A4B", "meta-llama--Llama-4-Scout-17B-16E-Instruct",
    "mistralai--Mistral-Nemo-Base-2407", "moonshotai--Kimi-Linear-48B-A3B-Instruct", "nvidia--MiniMax-M2.7-NVFP4",
    "nvidia--MiniMax-M3-NVFP4", "nvidia--NVIDIA-Nemotron-3.5-Lightning-30B-A3B-NVFP4",
    "nvidia--Qwen3.5-122B-A10B-NVFP4", "openai--gpt-oss-120b", "zai-org--GLM-5.3-Flash",
)  # fmt: skip


def made(name: str, **options: object) -> Draft:
    cluster = inventory.load(None)
    return draft.draft(reading.read(str(folder(name))), cluster, GB10, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", DRAFTED)
def test_a_draft_is_a_profile_that_nothing_refuses(name: str, tmp_path: Path) -> None:
    drafted = made(name)
    file = tmp_path / f"{drafted.name}.yml"
    file.write_text(draft.of(drafted))
    loaded = profiles.load(file)
    assert profile_status.status(loaded.profile) == "unvalidated"
    assert not [f for f in drafted.findings if f.severity == "error" and f.rule != "does-not-fit"], drafted.findings
    assert max(map(len, draft.of(drafted).splitlines())) <= 120
    assert drafted.data["model"] == loaded.profile.model.model_dump(exclude_unset=True, exclude_defaults=False) | {}
    assert not comparing.findings(loaded, as_model.of(reading.read(str(folder(name)))))


def test_it_goes_on_the_fewest_sparks_and_the_arithmetic_says_so() -> None:
    few, many = made("openai--gpt-oss-120b"), made("openai--gpt-oss-120b", nodes=2)
    assert few.placement and many.placement
    assert (few.placement.parallel.nodes, few.fits) == (1, True)
    assert many.placement.parallel.nodes == 2
    assert many.placement.speeds["1"] > few.placement.speeds["1"]


def test_what_fits_on_no_eight_sparks_says_by_how_much() -> None:
    drafted = made("deepseek-ai--DeepSeek-V4-Pro")
    assert drafted.fits is not True and drafted.placement
    assert len(drafted.asked) > 8
    assert "none of" in drafted.sources["launch.parallel"]


def test_flags_come_from_the_nearest_profile_and_say_so() -> None:
    drafted = made("nvidia--MiniMax-M2.7-NVFP4")
    assert drafted.like and drafted.like.name == "nvidia--minimax-m2.7-nvfp4" and not drafted.like.differences
    assert drafted.sources["launch.moe_runner_backend"] == "as nvidia--minimax-m2.7-nvfp4"
    assert "Flags as nvidia--minimax-m2.7-nvfp4" in drafted.data["evidence"][0]["claim"]


def test_a_packing_that_nobody_ran_takes_no_packing_s_flags() -> None:
    drafted = made("Qwen--Qwen3.5-397B-A17B", engine="sglang")  # bf16; the profiles of its kind are NVFP4
    assert drafted.like and "not bf16" in "".join(drafted.like.differences)
    assert not [key for key in drafted.data["launch"] if "gemm" in key or key == "quantization"]


def test_code_that_no_commit_pins_is_not_trusted_by_a_draft() -> None:
    drafted = made("nvidia--NVIDIA-Nemotron-3-Super-120B-A12B-FP8")
    assert "trust_remote_code" not in drafted.data["launch"]
    assert any("trust_remote_code" in text and "remote-code" in text for text in drafted.unknown)


def test_a_draft_names_the_commit_that_it_was_made_from(tmp_path: Path) -> None:
    """As the hub tells it, or its cache: then the code beside it is of that commit, and may stay."""
    commit = "4f0cf9daaeb7a4d5e23f80a00e7ed15f0e03caf6"
    place = tmp_path / "models--nvidia--NVIDIA-Nemotron-3-Super-120B-A12B-FP8" / "snapshots" / commit
    shutil.copytree(folder("nvidia--NVIDIA-Nemotron-3-Super-120B-A12B-FP8"), place)
    drafted = draft.draft(reading.read(str(place)), inventory.load(None), GB10)
    file = tmp_path / f"{drafted.name}.yml"
    file.write_text(draft.of(drafted))
    assert profiles.load(file).profile.model.revision == commit
    assert drafted.data["launch"]["trust_remote_code"] is True


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"engine": "exllama"}, "is none of"),
        ({"engine": "trtllm"}, "no first launch of trtllm can be drafted"),
        ({"release": "latest"}, "does not begin with a release number"),
    ],
)
def test_an_engine_or_release_that_is_none_is_refused(options: dict[str, object], says: str) -> None:
    with pytest.raises(InputError, match=says):
        made("openai--gpt-oss-20b", **options)


def test_heads_decide_what_can_be_split() -> None:
    drafted = made("nvidia--MiniMax-M2.7-NVFP4")  # 48 heads
    model = draft.loaded(drafted).profile.model
    assert {each.tp for each in placement.splits(model, 5, "vllm")} == {1}
    assert {(each.tp, each.pp, each.ep) for each in placement.splits(model, 4, "vllm")} == {
        (4, 1, 1), (4, 1, 4), (2, 2, 1), (2, 2, 2), (1, 4, 1),
    }  # fmt: skip


def test_a_wrong_fact_has_its_place(tmp_path: Path) -> None:
    drafted = made("openai--gpt-oss-120b")
    text = draft.of(drafted).replace("sliding: 18", "sliding: 17").replace("hidden: 2880", "hidden: 2808")
    file = tmp_path / "wrong.yml"
    file.write_text(text)
    loaded = profiles.load(file)
    found = comparing.findings(loaded, as_model.of(reading.read(str(folder("openai--gpt-oss-120b")))))
    assert {(f.message, f.severity) for f in found} == {
        ("model.layers.sliding is 17; the checkpoint has 18", "warning"),
        ("model.hidden is 2808; the checkpoint has 2880", "warning"),
    }
    lines = text.splitlines()
    for finding in found:
        name, line, column = finding.where.rsplit(":", 2)
        key = finding.message.split()[0].rpartition(".")[2]
        assert lines[int(line) - 1][int(column) - 1 :].startswith(f"{key}:"), (name, finding.where)
