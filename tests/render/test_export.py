"""What is exported comes back as the same profile, whatever its values look like; a pod's words are not in it."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sparkloom import case
from sparkloom.base.errors import Refused
from sparkloom.inputs import profile as profiles
from sparkloom.judge import imported
from sparkloom.launch.imported.draft import CONSENT
from sparkloom.launch.resolve import resolve
from sparkloom.render import export
from sparkloom.render.export import host

FORMS = sorted(export.FORMS)
FOUR = "nvidia--nemotron-3-super-120b-a12b-nvfp4"
ONE = "nvidia--nemotron-3-super-120b-a12b-nvfp4--vllm-1node"


def back(text: str, form: str) -> dict[str, Any]:
    taken = imported.take_in(text, form)
    assert taken.loaded is not None, taken.refused
    return plain(taken.loaded.profile)


def plain(profile: Any) -> dict[str, Any]:
    """All but the one thing that no export carries: whose code may run is for each person to say."""
    data: dict[str, Any] = profile.model_dump()
    data["model"].pop(CONSENT)
    return {key: value for key, value in data.items() if key != "extends"}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", profiles.names())
def test_every_shipped_profile_comes_back(name: str, form: str) -> None:
    made = case.hand_out(name, form, force=True)
    assert back(made.text, form) == plain(profiles.load(name).profile)
    why = {left.why for left in imported.take_in(made.text, form).draft.leftover if left.what.startswith("-")}
    assert all("endpoint" in said or "inventory" in said or "translated" in said for said in why), why


TEXT = st.text(alphabet="abc XYZ'\"\\$`{}%#:!-=,é\t", min_size=1, max_size=20).filter(lambda text: text.strip() == text)
VALUES = st.one_of(
    TEXT,
    st.dictionaries(
        st.sampled_from("abc"), st.one_of(TEXT, st.integers(-(1 << 40), 1 << 40), st.booleans()), max_size=3
    ),
)


@settings(max_examples=40)
@given(TEXT, VALUES, st.lists(TEXT, min_size=1, max_size=3), TEXT, st.sampled_from(FORMS))
@example("--ca", "a", ["a"], "a", "commands")  # read as the beginning of --calculate-kv-scales
@example("-{b}", "-5", ["-a b"], "-", "sparkrun")
@example(":", ":", ["```"], ":", "commands")  # taken for a page with code in it
@example("--ca=", {"a": "-"}, ["--ca"], "-a", "compose")
def test_any_text_comes_back(template: str, config: Any, served: list[str], variable: str, form: str) -> None:
    data = yaml.safe_load((profiles.PROFILES / f"{ONE}.yml").read_text())
    data["launch"] |= {"chat_template": template, "hf_overrides": config, "served_model_name": served}
    data["env"] |= {"ODD": variable}
    loaded = profiles.load(ONE)
    launch_section = loaded.profile.launch.model_copy()
    launch_section.__pydantic_extra__ = {key: value for key, value in data["launch"].items() if key != "parallel"}
    changed = loaded.profile.model_copy(update={"launch": launch_section, "env": data["env"]})
    launch = resolve(profiles.LoadedProfile(ONE, changed, loaded.document), host.at_hosts(case.cluster()))
    assert back(export.text(launch, form), form)["launch"] == plain(launch.profile.profile)["launch"]
    assert back(export.text(launch, form), form)["env"] == data["env"]


@pytest.mark.parametrize("form", FORMS)
def test_a_file_that_is_sparkloom_s_own_comes_back_as_nothing(form: str) -> None:
    """TensorRT-LLM is told to count its steps, in a file, whatever the profile says."""
    name = "nvidia--nemotron-3-super-120b-a12b-nvfp4--trtllm-1node"
    overrides = ["launch.extra_llm_api_options=", "launch.kv_cache_free_gpu_memory_fraction=0.5"]
    launch = case.judge(name, overrides=overrides).launch
    there = resolve(launch.profile, host.at_hosts(case.cluster()))
    assert back(export.text(there, form), form)["launch"] == plain(launch.profile.profile)["launch"]


@pytest.mark.parametrize("form", FORMS)
def test_what_people_change_in_a_command_is_in_the_profile(form: str) -> None:
    text = case.hand_out(ONE, form).text
    old, new = ("'4'", "'9'") if form == "compose" else ("--max-num-seqs 4", "--max-num-seqs 9")
    where = text.index("--max-num-seqs")
    assert back(text[:where] + text[where:].replace(old, new, 1), form)["launch"]["max_num_seqs"] == 9


def test_commands_are_a_hosts_and_hold_no_secret() -> None:
    text = case.hand_out(FOUR, "commands").text
    commands = text.partition("# What follows")[0]
    assert commands.count("docker run") == 4 and "net1" not in commands and "NCCL_IB_HCA==rocep1s0f0" in commands
    assert commands.count("--config /sparkloom/key/engine.yaml") == 1  # a file, and rank 0's alone
    assert "192.168.100.14 on enp1s0f0np0" in commands


@pytest.mark.parametrize("form", ["commands"])
def test_bash_takes_the_commands(form: str, tmp_path: Path) -> None:
    for name in profiles.names():
        text = case.hand_out(name, form, force=True).text
        subprocess.run(["bash", "-n"], input=text, text=True, check=True)


def test_compose_is_one_service_per_rank_and_dollars_are_dollars() -> None:
    data = yaml.safe_load(case.hand_out(FOUR, "compose").text)
    assert list(data["services"]) == ["rank0", "rank1", "rank2", "rank3"]
    assert data["services"]["rank1"]["profiles"] == ["rank1"] and "secrets" not in data["services"]["rank1"]


def test_a_recipe_leaves_to_sparkrun_what_sparkrun_adds() -> None:
    data = yaml.safe_load(case.hand_out(FOUR, "sparkrun").text)
    assert data["recipe_version"] == "2" and data["min_nodes"] == data["max_nodes"] == 4
    assert not {"--nnodes", "--node-rank", "--dist-init-addr"} & set(data["command"].split())
    assert "{tensor_parallel}" in data["command"] and data["defaults"]["tensor_parallel"] == 4


def test_a_launch_that_fails_is_handed_out_to_nobody_unless_forced() -> None:
    with pytest.raises(Refused):
        case.hand_out(FOUR, "commands", overrides=["launch.moe_runner_backend=triton", "engine.release=0.5.12"])


def test_what_a_pod_does_beside_is_said() -> None:
    patched = next(name for name in profiles.names() if profiles.load(name).profile.engine.patches)
    assert any("source patch" in said for said in case.hand_out(patched, "commands", force=True).not_carried)


CONSENTING = [name for name in profiles.names() if profiles.load(name).profile.model.runs_unpinned_code_of]


@pytest.mark.parametrize("form", FORMS)
def test_a_consent_to_run_others_code_is_in_no_export(form: str) -> None:
    assert CONSENTING
    for name in CONSENTING:
        made = case.hand_out(name, form, force=True)
        assert CONSENT not in made.text
        assert any(said.startswith("consent to run the code of") for said in made.not_carried)
        taken = case.take_in(made.text, form)
        assert not taken["profile"]["model"].get(CONSENT)
        refused = {f["rule"] for f in taken["verdict"]["findings"] if f["severity"] == "error"}
        assert "remote-code-unpinned" in refused or "trust_remote_code" not in taken["profile"]["launch"]
