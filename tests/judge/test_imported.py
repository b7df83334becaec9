"""The verdict on somebody's recipe: parser, rules, plan, and what is not known stays unknown."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkloom import case
from sparkloom.base.errors import InputError
from sparkloom.inputs import profile as profiles
from tests import public_models
from tests.later import thrown

KNOWN = "docker run vllm/vllm-openai:v0.19.0 vllm serve nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-NVFP4 --max-num-seqs 4"
OTHERS = "SPARKLOOM_OTHERS"  # a folder with other people's recipes, one folder per source


def test_a_known_model_is_judged_as_a_profile_is() -> None:
    taken = case.take_in(f"{KNOWN} --gpu-memory-utilization 0.8 --max-model-len 65536", "x.sh")
    verdict = taken["verdict"]
    assert verdict["parser"]["accepts"] is True and verdict["parser"]["sure"] is True and verdict["fits"] is True
    assert verdict["facts"]["source"] == "shipped profile nvidia--nemotron-3-super-120b-a12b-nvfp4"
    assert verdict["facts"]["sure"] is True
    assert verdict["command"]["left_out"] == {} == verdict["command"]["changed"]
    again = profiles.of_text(taken["text"], "x", "x.yml")
    assert again.profile.launch.flags["max_num_seqs"] == 4


def test_what_the_release_refuses_is_a_finding_with_its_place_in_the_draft() -> None:
    taken = case.take_in(f"{KNOWN} --kv-cache-dtype fp9", "x.sh")
    finding = next(f for f in taken["verdict"]["findings"] if f["rule"] == "flag-choice")
    assert finding["severity"] == "error" and finding["where"].startswith("draft:")
    assert taken["verdict"]["parser"]["accepts"] is False


def test_without_facts_flags_and_rules_speak_and_the_fit_is_unknown() -> None:
    taken = case.take_in("vllm serve somebody/Unheard-Of-3B --trust-remote-code --max-num-seqs 4", "x.sh")
    verdict = taken["verdict"]
    assert verdict["fits"] is None and "no facts" in verdict["reason"] and verdict["facts"] is None
    assert verdict["parser"]["accepts"] is True
    assert "remote-code-unpinned" in {finding["rule"] for finding in verdict["findings"]}
    assert taken["profile"]["model"] == {"id": "somebody/Unheard-Of-3B"}


def test_a_model_whose_name_is_not_known_is_asked_for() -> None:
    """Red before: nobody can pin a commit of `unknown/model`, which is what its first line asked for."""
    taken = case.take_in("docker run vllm/vllm-openai:v0.25.1 --model /model --trust-remote-code", "x.sh")
    assert taken["start"]["why"].startswith("refused here: unknown/model stands where the model's name belongs")
    assert "remote-code-unpinned" not in {finding["rule"] for finding in taken["verdict"]["findings"]}


def test_facts_by_a_name_never_refuse_for_memory() -> None:
    taken = case.take_in("vllm serve Somebody/Qwen3.5-397B-A17B-BF16 --max-model-len 4096", "x.sh")
    verdict = taken["verdict"]
    assert verdict["facts"]["sure"] is False and verdict["fits"] is None and "uncertain" in verdict["reason"]
    assert "does-not-fit" not in {f["rule"] for f in verdict["findings"] if f["severity"] == "error"}


def test_a_folder_with_the_models_config_gives_facts() -> None:
    folder = public_models.folder("openai--gpt-oss-120b")
    verdict = case.take_in("vllm serve openai/gpt-oss-120b --max-num-seqs 4", "x.sh", config=folder)["verdict"]
    assert verdict["facts"]["source"] == f"config.json in {folder}" and verdict["plan"]["memory"]


def test_a_file_of_the_authors_will_not_be_there() -> None:
    taken = case.take_in(f"{KNOWN} --chat-template unsloth.jinja", "x.sh")
    assert "file-of-the-author" in {finding["rule"] for finding in taken["verdict"]["findings"]}
    for words in ("--lora-modules a=/loras/a b=org/b", "--chat-template ./here"):
        found = case.take_in(f"{KNOWN} {words}", "x.sh")["verdict"]["findings"]
        (file,) = [one["message"] for one in found if one["rule"] == "file-of-the-author"]
        assert "org/b" not in file


def test_another_releases_catalog_is_no_certainty() -> None:
    """Red before: `will not start`, certain, for a flag that this release has and the oldest catalog has not."""
    old = "docker run vllm/vllm-openai:v0.6.3 --model o/n --rope-scaling '{}'"
    taken = case.take_in(old, "x.sh")
    assert taken["start"]["verdict"] == "may not start" and taken["verdict"]["parser"]["accepts"] is True
    assert [f["rule"] for f in taken["verdict"]["findings"] if "--rope-scaling" in f["message"]] == ["flag-undecided"]


def test_what_is_no_json_is_refused_by_any_release_and_is_no_forks() -> None:
    taken = case.take_in('vllm serve openai/gpt-oss-120b --speculative-config {"method":"mtp"}', "x.sh")
    assert taken["start"]["verdict"] == "will not start" and "valid JSON" in taken["start"]["why"]
    assert "fork" not in taken["profile"]["engine"]


def test_what_cannot_be_launched_leaves_memory_unknown() -> None:
    taken = case.take_in("trtllm-serve nvidia/Qwen3-235B-A22B-NVFP4 --tp_size 2", "x.sh")
    assert taken["verdict"]["reason"] == "unknown: it cannot be launched as it stands"


def test_copies_share_a_models_experts() -> None:
    """Red before: certain that 149 GiB of weights do not fit, beside a plan in which they may."""
    text = "vllm serve deepseek-ai/DeepSeek-V4-Flash -dp 2 --enable-expert-parallel"
    assert "weights-exceed-memory" not in {f["rule"] for f in case.take_in(text, "x.sh")["verdict"]["findings"]}


def test_a_consent_is_no_fact() -> None:
    """The shipped profile consents to its publisher's code; whoever imports has not."""
    taken = case.take_in("sglang serve --model-path sparkarena/Minimax-M3-v0-NVFP4 --tp 4 --trust-remote-code", "x.sh")
    assert "runs_unpinned_code_of" not in taken["profile"]["model"]
    assert "remote-code-unpinned" in {f["rule"] for f in taken["verdict"]["findings"] if f["severity"] == "error"}


def test_a_consent_that_stands_in_an_export_is_its_authors() -> None:
    """Exports of before did carry it, and anybody can write it into a file that others import."""
    text = case.hand_out("sparkarena--minimax-m3-v0-nvfp4", "sparkrun", force=True).text
    model = "      id: sparkarena/Minimax-M3-v0-NVFP4\n"
    assert text.count(model) == 1
    for said in ("[sparkarena/Minimax-M3-v0-NVFP4]", "sparkarena/Minimax-M3-v0-NVFP4"):
        taken = case.take_in(text.replace(model, f"{model}      runs_unpinned_code_of: {said}\n"), "x.yaml")
        assert not taken["profile"]["model"].get("runs_unpinned_code_of")
        (left,) = [left for left in taken["remainder"] if "runs_unpinned_code_of" in left["what"]]
        assert "sparkarena/Minimax-M3-v0-NVFP4" in left["what"] and "not yours" in left["why"]
        assert "remote-code-unpinned" in {f["rule"] for f in taken["verdict"]["findings"] if f["severity"] == "error"}


def test_a_runtime_that_nobody_here_knows_is_an_engine_that_is_not_served() -> None:
    recipe = "recipe_version: '4'\nmodel: ~/gguf/some.gguf\nruntime: ds4-cuda\n"
    taken = case.take_in(f"{recipe}launch: ds4-serve\ndefaults: {{context: 196608}}\n", "ds4.yaml")
    assert taken["verdict"]["fits"] is None
    assert "ds4-cuda is an engine that sparkloom does not serve" in taken["verdict"]["reason"]
    assert {"defaults: context 196608", "launch: ds4-serve"} <= {left["what"] for left in taken["remainder"]}


def test_an_engine_that_nobody_serves_here_is_said_so() -> None:
    text = "model: org/name\nruntime: atlas\ncontainer: a:1\ndefaults: {max_model_len: 4096, oom_guard_mb: 1}\n"
    taken = case.take_in(text, "x.yaml")
    assert [finding["rule"] for finding in taken["verdict"]["findings"]] == ["unknown-engine"]
    assert [one["what"] for one in taken["verdict"]["unknown"]] == ["engine atlas"]
    assert {"--max-seq-len 4096", "defaults: oom_guard_mb 1"} <= {left["what"] for left in taken["remainder"]}


def test_eight_sparks_without_an_inventory_and_four_with_one() -> None:
    text = "vllm serve nvidia/NVIDIA-Nemotron-3-Ultra-550B-A55B-NVFP4 -tp 8 --max-model-len 4096"
    assert case.take_in(text, "x.sh")["verdict"]["plan"]["memory"]
    rules = {f["rule"] for f in case.take_in(text, "x.sh", Path("inventories/gb10"))["verdict"]["findings"]}
    assert "too-few-nodes" in rules


@pytest.mark.skipif(OTHERS not in os.environ, reason=f"{OTHERS} names no folder with other people's recipes")
def test_other_peoples_recipes_are_read_and_their_commands_come_out_as_they_were() -> None:
    from scripts.others.__main__ import files, outcome

    outcomes = [outcome(path) for path in files(Path(os.environ[OTHERS]))]
    assert outcomes and sum(o.read for o in outcomes) >= 0.95 * len(outcomes)
    assert [str(o.path) for o in outcomes if not all(o.identical.values())] == []
    compared = [o for o in outcomes if o.equal is not None]
    assert sum(bool(o.equal) for o in compared) >= 0.95 * len(compared)


STARTS = {
    "vllm": ("vllm serve", "-tp"), "sglang": ("sglang serve --model-path", "--tp"),
    "trtllm": ("trtllm-serve", "--tp_size"), "llamacpp": ("llama-server -hf", "--parallel"),
}  # fmt: skip
MODELS = (
    "nvidia/GLM-4.7-NVFP4",
    "stranger/Moon-7B",
    "Qwen/Qwen3.5-397B-A17B-odd",
    "/models/x/y",
    "./moon",
    "$MODEL",
    "-x",
    "",
)
IMAGES = (
    "",
    "vllm/vllm-openai:v0.19.0",
    "lmsysorg/sglang:v0.5.10",
    "ghcr.io/me/moon:nightly",
    "$IMAGE",
    "Not An Image",
)
FLAGS = (
    "", "--moon", "--moon 3", "--moon=-x", "--moon a b", "--moon '{\"a\": [1]}'", "--max-num-sqes 4",
    "--kv-cache-dtype moon4", "--kv-cache-dtype $KV",
    "--chat-template x.jinja", "--trust-remote-code", "--speculative-config nope", "--moon ''",
    "--gpu-memory-utilization nan", "--moon 1e999", "--revision abc", "--a=b=c", "-Z", "--seed 99999999999999999999",
)  # fmt: skip
SIZES = ("1", "2", "3", "7", "16", "0", "x")
WRITTEN = {
    "line": lambda engine, image, words: words,
    "docker": lambda engine, image, words: f"docker run -e MOON=1 {image} {words}",
    "compose": lambda engine, image, words: yaml.safe_dump({"services": {"a": {"image": image, "command": words}}}),
    "sparkrun": lambda engine, image, words: yaml.safe_dump(
        {"recipe_version": "2", "model": "a/b", "runtime": engine, "container": image, "command": words}
    ),
    "eugr": lambda engine, image, words: yaml.safe_dump(
        {
            "recipe_version": "1",
            "container": image,
            "mods": ["mods/x"],
            "command": words.replace("{", "{{").replace("}", "}}"),
        }
    ),
    "page": lambda engine, image, words: f"# Moon\n\n```bash\n{words}\n```\n",
}


@settings(max_examples=thrown(150))
@given(
    form=st.sampled_from(sorted(WRITTEN)), engine=st.sampled_from(sorted(STARTS)), model=st.sampled_from(MODELS),
    image=st.sampled_from(IMAGES), flags=st.lists(st.sampled_from(FLAGS), max_size=2), size=st.sampled_from(SIZES),
)  # fmt: skip
def test_no_mixture_of_the_unknown_is_a_crash(
    form: str, engine: str, model: str, image: str, flags: list[str], size: str
) -> None:
    """Unknown model, flag, image and size in each form of each engine: judged, or refused by a reason."""
    start, parallel = STARTS[engine]
    text = WRITTEN[form](engine, image, f"{start} {model} {parallel} {size} {' '.join(flags)}")
    try:
        taken = case.take_in(text, "x.yaml")
    except InputError:
        return
    verdict, told = taken["verdict"], [one["what"] for one in taken["verdict"]["unknown"]]
    if verdict["facts"] is None:
        assert verdict["fits"] is None and f"model {taken['profile']['model']['id']}" in told
    for key in taken["profile"]["engine"].get("fork", {}).get("flags", {}):
        assert any(what.startswith("--" + key.replace("_", "-")) for what in told)
