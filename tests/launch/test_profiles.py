"""The shipped profiles: named by one scheme, judged clean, equal to the posts' recipes but for recorded corrections."""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Any

import jsonschema
import pytest
import yaml

from sparkloom import case
from sparkloom.base import document
from sparkloom.inputs import profile
from sparkloom.launch import schema
from sparkloom.launch.resolve import Rank
from tests import golden_files
from tests.places import DATA

NAMES = profile.names()
EVERY_RECIPE: list[dict[str, Any]] = yaml.safe_load((DATA / "recipes.yml").read_text())
# A command with lists and dotted keys is compared by the release's own reading: test_nvidia_ultra_vllm.py.
RECIPES = [recipe for recipe in EVERY_RECIPE if not recipe.get("typed")]
# Flags that follow from the inventory and the house, whatever a post says.
PLACE = {"--host", "--port", "--node-rank", "--nnodes", "--dist-init-addr"}
# And how long an engine leaves itself alone, with its counters: launch/patience.py, for every launch.
WAITS = ("--enable-metrics", "--watchdog-timeout", "--dist-timeout", "--distributed-timeout-seconds",
         "--cpu-distributed-timeout-seconds")  # fmt: skip


@cache
def judged(name: str) -> case.Case:
    return case.judge(name)


def flags(words: list[str] | tuple[str, ...]) -> dict[str, str | None]:
    """`--flag value` pairs; a switch has None. The program and the positional model are not among them."""
    found: dict[str, str | None] = {}
    last = ""
    for word in words:
        if word.startswith("--"):
            last = word
            found[last] = None
        elif last:
            found[last] = word
    return found


@pytest.mark.parametrize("name", NAMES)
def test_the_name_says_who_made_what(name: str) -> None:
    """<org>--<model>[--variant], from the hub id; "nvidia-" in front of NVIDIA's models says nothing."""
    org, model, *variant = name.split("--")
    hub_org, hub_model = judged(name).launch.profile.profile.model.id.lower().split("/")
    assert (org, model) == (hub_org, hub_model.removeprefix("nvidia-"))
    assert len(variant) <= 1 and name == name.lower()
    parent = judged(name).launch.profile.profile.extends
    if variant and parent:
        assert parent.split("--")[:2] == [org, model], "a variant extends the profile of its own model"


@pytest.mark.parametrize("name", NAMES)
def test_lint_has_nothing_against_a_shipped_profile(name: str) -> None:
    """But that the profile consents to its publisher's code, until the site has locked a commit of it."""
    found = [finding for finding in judged(name).findings if finding.severity != "info"]
    consents = judged(name).launch.profile.profile.model.runs_unpinned_code_of
    assert [f"{f.severity} {f.rule}: {f.message}" for f in found if f.rule != "remote-code-by-consent"] == []
    assert [f.severity for f in found] == ["warning"] * len(consents), "one for each that it consents to"


@pytest.mark.parametrize("name", NAMES)
def test_every_claim_has_a_source_and_every_figure_a_configuration(name: str) -> None:
    loaded = judged(name).launch.profile.profile
    assert loaded.evidence, "a profile without evidence says nothing"
    assert loaded.model.source
    for entry in loaded.evidence:
        assert entry.source and entry.claim
        assert entry.numbers is None or entry.config is not None, entry.claim


@pytest.mark.parametrize("name", NAMES)
def test_golden_argv_and_env(name: str) -> None:
    ranks = judged(name).launch.ranks
    for rank in {0, len(ranks) - 1}:
        golden_files.check(name, f"argv-rank{rank}.txt", one_flag_per_line(ranks[rank]))
    environment = "".join(f"{variable.name}={variable.value}\n" for variable in ranks[0].env)
    golden_files.check(name, "env-rank0.txt", environment)


def one_flag_per_line(rank: Rank) -> str:
    """A word on the line of its flag, so that a diff shows one flag."""
    text = ""
    for word in rank.argv:
        text += ("\n" if word.startswith("--") else " " if text else "") + word
    return text + "\n"


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe["profile"])
def test_each_rank_runs_the_posted_recipe(recipe: dict[str, Any]) -> None:
    launch = judged(recipe["profile"]).launch
    expected = flags(recipe["posted"].split()) | {key: str(value) for key, value in recipe.get("house", {}).items()}
    for key, (value, _) in {**recipe.get("added", {}), **recipe.get("changed", {})}.items():
        expected[key] = value
    for key in recipe.get("removed", {}):
        del expected[key]
    for rank in launch.ranks:
        program = recipe["program"]
        assert list(rank.argv[: len(program)]) == program
        house = PLACE | {"--revision"} | ({*WAITS} - set(expected))  # the commit that we pin, and no post
        assert {k: v for k, v in flags(rank.argv).items() if k not in house} == {
            k: v for k, v in expected.items() if k not in PLACE
        }
        assert all(flags(rank.argv).get(key, "3600") in ("3600", expected.get(key)) for key in WAITS[1:])
        own = {variable.name: variable.value for variable in rank.env}
        assert own.items() >= recipe.get("env", {}).items()
        if "--nnodes" in expected:
            assert flags(rank.argv)["--nnodes"] == expected["--nnodes"] == str(len(launch.ranks))
            assert flags(rank.argv)["--node-rank"] == str(rank.index)


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe["profile"])
def test_each_correction_is_recorded_as_evidence(recipe: dict[str, Any]) -> None:
    claims = " ".join(entry.claim for entry in judged(recipe["profile"]).launch.profile.profile.evidence)
    for _, said in {**recipe.get("added", {}), **recipe.get("changed", {})}.values():
        assert said in claims
    for flag, said in recipe.get("removed", {}).items():
        assert flag in claims and said in claims


def test_the_options_file_of_tensorrt_llm_is_the_guide_s() -> None:
    (text,) = judged("nvidia--nemotron-3-super-120b-a12b-nvfp4--trtllm-1node").launch.files.values()
    options = yaml.safe_load(text)
    assert options["kv_cache_config"] == {
        "dtype": "fp8",
        "enable_block_reuse": False,
        "free_gpu_memory_fraction": 0.9,
        "mamba_ssm_cache_dtype": "float16",
        "mamba_ssm_stochastic_rounding": True,
        "mamba_ssm_philox_rounds": 5,
    }
    assert options["moe_config"] == {"backend": "CUTLASS"}
    assert options["cuda_graph_config"] == {"enable_padding": True, "max_batch_size": 8}
    assert options["speculative_config"] == {
        "decoding_type": "MTP",
        "num_nextn_predict_layers": 3,
        "allow_advanced_sampling": True,
    }


def test_two_sparks_lend_their_memory_over_rpc() -> None:
    head, helper = judged("unsloth--nemotron-3-ultra-550b-a55b-gguf--2node").launch.ranks
    address = flags(helper.argv)["--host"]
    assert head.argv[0] == "/app/llama-server" and helper.argv[0] == "/app/rpc-server", "they are in no PATH"
    assert flags(head.argv)["--rpc"] == f"{address}:{flags(helper.argv)['--port']}"


SCHEMA = profile.PROFILES / "schema.json"


def test_schema_json_is_fresh() -> None:
    assert json.loads(SCHEMA.read_text()) == schema.build(), (
        "run: .venv/bin/sparkloom show schema > model_profiles/schema.json"
    )


@pytest.mark.parametrize("name", NAMES)
def test_an_editor_finds_the_schema_and_agrees(name: str) -> None:
    path = profile.PROFILES / f"{name}.yml"
    assert path.read_text().startswith("# yaml-language-server: $schema=schema.json\n")
    validator = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text()))
    assert [error.message for error in validator.iter_errors(document.load(path).data)] == []


def test_an_editor_objects_to_what_the_loader_refuses() -> None:
    validator = jsonschema.Draft202012Validator(schema.build())
    data = document.load(profile.PROFILES / "nvidia--glm-4.7-nvfp4.yml").data
    for broken in (
        {**data, "modle": {}},
        {**data, "engine": {**data["engine"], "name": "sglnag"}},
        {**data, "model": {**data["model"], "hidden": "5120"}},
        {key: value for key, value in data.items() if key != "launch"},
    ):
        assert list(validator.iter_errors(broken))


def test_every_model_that_was_measured_serving_has_a_profile() -> None:
    rows = [
        json.loads(line)
        for line in (profile.PROFILES.parent / "scripts/sparkloom/judge/data/measured_rows.jsonl").open()
    ]
    served = {row["model"] for row in rows if row.get("outcome") == "ok"}
    assert len(served) >= 16
    assert served <= {judged(name).launch.profile.profile.model.id for name in NAMES}


def test_names_fit_kubernetes_and_file_systems() -> None:
    assert all(re.fullmatch(r"[a-z0-9]+(--?[a-z0-9.]+)*", name) for name in NAMES)
