"""An engine's words read backwards: each ends in the profile or in the remainder, and comes back as it was."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkloom.inputs import known_models
from sparkloom.inputs.importers import source
from sparkloom.inputs.importers.found import Started
from sparkloom.launch import engines
from sparkloom.launch.imported import command, spoken
from sparkloom.launch.imported.draft import Draft, draft
from tests.later import thrown


def drafted(text: str, name: str = "start.sh") -> Draft:
    return draft(source.read(text, name, engines.programs()), "test")


def named(made: Draft) -> dict[str, str]:
    return {left.what: left.why for left in made.leftover}


def test_ray_is_translated_and_said() -> None:
    made = drafted("vllm serve org/name -tp 4 --distributed-executor-backend ray --max-num-seqs 4")
    assert made.data["launch"] == {"parallel": {"nodes": 4, "tp": 4, "pp": 1, "ep": 1}, "max_num_seqs": 4}
    assert "translated" in named(made)["--distributed-executor-backend ray"]


def test_what_ray_alone_can_do_is_named() -> None:
    made = drafted(
        "ray start --head --port 6379\nVLLM_USE_RAY_SPMD_WORKER=1 vllm serve o/n -tp 2 --data-parallel-backend ray"
    )
    told = named(made)
    assert "Ray placed the ranks" in told["start.sh:1: ray start --head --port 6379"]
    assert "no Ray runs here" in told["env VLLM_USE_RAY_SPMD_WORKER=1"]
    assert [finding.rule for finding in made.findings] == ["no-counterpart"]


def test_parts_of_the_placement() -> None:
    made = drafted("vllm serve org/name -tp 2 -pp 2 -dp 2 --enable-expert-parallel")
    assert made.data["launch"]["parallel"] == {"nodes": 8, "tp": 2, "pp": 2, "dp": 2, "ep": 4}
    made = drafted("sglang serve --model-path org/name --tp 4 --ep-size 2 --nnodes 4 --node-rank 1")
    assert made.data["launch"]["parallel"] == {"nodes": 4, "tp": 4, "pp": 1, "ep": 2}
    assert "--node-rank 1" in named(made)
    made = drafted("llama-server -hf org/name-GGUF:Q4_K_M --rpc 10.0.0.2:50052,10.0.0.3:50052 -c 4096 --parallel 4")
    assert made.data["launch"] == {"parallel": {"nodes": 3, "tp": 1, "pp": 3, "ep": 1}, "ctx_size": 4096, "np": 4}
    assert made.model == "org/name-GGUF" and "Q4_K_M" in str(named(made))


def test_dotted_flags_switched_off_ones_and_lists() -> None:
    made = drafted(
        "vllm serve org/name -cc.mode 0 -cc.cudagraph_mode NONE --no-enable-prefix-caching --served-model-name a b"
    )
    flags = made.data["launch"]
    assert flags["compilation_config"] == {"mode": 0, "cudagraph_mode": "NONE"}
    assert flags["no_enable_prefix_caching"] is True and flags["served_model_name"] == ["a", "b"]


def test_what_only_a_fork_has_is_marked_and_a_slip_is_no_fork() -> None:
    made = drafted("docker run somebody/vllm-node:x vllm serve org/name --mxfp4-layers moe,qkv --moe-backend b99x -e")
    assert made.data["engine"]["fork"]["flags"] == {"mxfp4_layers": "text", "moe_backend": ["b99x"]}
    made = drafted("docker run somebody/vllm-node:x vllm serve org/name --max-num-seq 4")
    assert "fork" not in made.data["engine"] and made.findings == [] and made.data["launch"]["max_num_seqs"] == 4
    made = drafted("docker run somebody/vllm-node:x vllm serve org/name --max-num-sqes 4")
    assert "fork" not in made.data["engine"] and made.findings[0].rule == "flag-unknown"
    made = drafted("docker run vllm/vllm-openai:v0.19.0 vllm serve org/name --mxfp4-layers moe")
    assert "fork" not in made.data["engine"] and made.findings[0].rule == "flag-unknown"
    assert "--mxfp4-layers moe" in named(made)


def test_a_flag_of_another_release_is_kept_for_the_parser_to_name() -> None:
    made = drafted(
        "docker run lmsysorg/sglang:v0.5.23 sglang serve --model-path o/n --cuda-graph-max-bs 8 --enable-ep-moe"
    )
    assert made.spoken and made.spoken.release == "0.5.23" and made.spoken.sure


def test_an_older_spelling_speaks_of_an_older_release() -> None:
    """Of an image whose tag names no release: what 0.5.14 calls otherwise, 0.5.13 has by this name."""
    start = "docker run somebody/sglang-node:x sglang serve --model-path o/n"
    older, newer = drafted(f"{start} --cuda-graph-max-bs 8"), drafted(f"{start} --cuda-graph-max-bs-decode 8")
    assert older.spoken and older.spoken.release.startswith("0.5.13") and not older.spoken.sure
    assert newer.spoken and newer.spoken.release == drafted(start).spoken.release  # type: ignore[union-attr]
    assert older.data["launch"]["cuda_graph_max_bs"] == 8


def test_a_flag_of_two_names_has_the_one_that_plans_and_rules_know() -> None:
    """A newer trtllm-serve writes the shorter name first; an older one knows the longer alone."""
    for name in ("kv_cache_free_gpu_memory_fraction", "free_gpu_memory_fraction"):
        made = drafted(f"trtllm-serve org/name --{name} 0.8")
        assert made.data["launch"] == {
            "parallel": {"nodes": 1, "tp": 1, "pp": 1, "ep": 1},
            "kv_cache_free_gpu_memory_fraction": 0.8,
        }


def test_the_authors_machine_and_secrets_stay_behind() -> None:
    made = drafted(
        "docker run -e NCCL_IB_HCA=rocep1s0f0 -e NCCL_PROTO=LL -e HF_HOME=/x -e HF_TOKEN=abc i:1 "
        "vllm serve org/name --api-key sk-secret --host 1.2.3.4 --port 1"
    )
    assert made.data["env"] == {"NCCL_PROTO": "LL"}
    told = named(made)
    assert {"env NCCL_IB_HCA=rocep1s0f0", "env HF_HOME=/x", "env HF_TOKEN", "--api-key", "--host 1.2.3.4"} <= set(told)
    assert "sk-secret" not in str(told) and "abc" not in str(told)


def test_a_model_in_a_folder_is_the_hubs_where_the_folder_says_so() -> None:
    commit = "9e165c30e2704aec5d9d593cce3eebd58bbef1cb"
    made = drafted(f"vllm serve /cache/hub/models--org--name/snapshots/{commit}")
    assert made.data["model"] == {"id": "org/name", "revision": commit} and any(
        "path" in why for why in named(made).values()
    )
    assert drafted("vllm serve /models/some.thing").model == "unknown/some.thing"


@pytest.mark.parametrize(
    "text",
    [
        "D=~/hub/models--org--name\ndocker run -v $D:/m:ro,z vllm/vllm-openai vllm serve /m/snapshots/abc",
        "docker run -v /hub/models--org--name:/m vllm/vllm-openai --model /m",
        "services: {a: {image: vllm/vllm-openai, volumes: ['./models--org--name:/m:ro'], command: --model /m}}",
        "docker run -v /else:/m -v /hub/models--org--name:/m/x vllm/vllm-openai --model /m/x/snapshots/abc",
    ],
)
def test_a_folder_in_a_container_is_the_one_that_is_mounted_there(text: str) -> None:
    """Red before: `snapshots/abc`, or a model without a name."""
    assert drafted(text).model == "org/name"


def test_a_folder_of_somebodys_machine_names_no_publisher() -> None:
    """Red before: `alice/Moon-7B`, which anybody may own on the hub."""
    assert drafted("docker run -v /home/alice/Moon-7B:/m vllm/vllm-openai --model /m").model == "unknown/Moon-7B"


def test_a_search_path_without_its_own_old_value_has_no_empty_folder() -> None:
    made = drafted('export LD_LIBRARY_PATH="/usr/lib/x:${LD_LIBRARY_PATH:-}"\nvllm serve org/name')
    assert made.data["env"] == {"LD_LIBRARY_PATH": "/usr/lib/x"}


def test_a_gguf_file_is_in_its_repository_and_no_repository_itself() -> None:
    made = drafted("llama-server -m /models/unsloth/Kimi-GGUF/UD-Q2_K_XL/Kimi-UD-Q2_K_XL-00001-of-00008.gguf")
    assert made.data["model"] == {"id": "unsloth/Kimi-GGUF", "file": "UD-Q2_K_XL/Kimi-UD-Q2_K_XL-00001-of-00008.gguf"}
    assert drafted("llama-server -m /data/llamas/moon.gguf").data["model"] == {
        "id": "unknown/moon.gguf",
        "file": "moon.gguf",
    }


def test_a_folder_that_the_source_fetches_is_called_after_what_it_fetches() -> None:
    made = drafted("hf download org/name --local-dir ./here\nvllm serve ./here")
    assert made.model == "org/name" and "model ./here" in named(made)


def test_a_path_in_somebodys_home_is_one() -> None:
    """Red before: `its value does not follow from this file`, and a model without a name."""
    fetched = 'M=$HOME/models/moon\nif ! hf download org/Moon-GGUF Moon-Q4_K_M.gguf --local-dir "$M"; then exit 1; fi\n'
    made = drafted(f'{fetched}llama-server --model "$M/Moon-Q4_K_M.gguf"')
    assert made.data["model"] == {"id": "org/Moon-GGUF", "file": "Moon-Q4_K_M.gguf"}
    assert drafted("docker run -v ${HOME}/models/Moon-7B:/m vllm/vllm-openai --model /m").model == "unknown/Moon-7B"
    assert drafted("vllm serve $HOME/elsewhere/Moon-7B").model == "elsewhere/Moon-7B"


def test_the_release_that_the_source_installs_is_its_release() -> None:
    for text in ("pip install 'vllm==0.24.0'\nvllm serve o/n", "uv run --with vllm[all]==0.24.0 -- vllm serve o/n"):
        told = drafted(text).spoken
        assert told and told.sure and told.release == "0.24.0"
    told = drafted("pip install vllm==0.24.0\ndocker run vllm/vllm-openai:v0.19.0 --model o/n").spoken
    assert told and told.release == "0.19.0"


def test_a_value_behind_a_switch_is_refused_and_turns_nothing_on() -> None:
    """Red before: `=False` was dropped, and the switch was on."""
    made = drafted("vllm serve o/n --enforce-eager=False --seed 1")
    assert "enforce_eager" not in made.data["launch"] and made.data["launch"]["seed"] == 1
    assert "--enforce-eager=False" in named(made) and made.findings[0].rule == "flag-extra-value"
    made = drafted("vllm serve o/n --enforce-eager false")
    assert "false" in named(made) and [finding.rule for finding in made.findings] == ["flag-extra-value"]


def test_a_place_that_nothing_fills_is_no_value() -> None:
    recipe = (
        "recipe_version: '2'\nmodel: o/n\ncontainer: somebody/vllm:x\ncommand: vllm serve {model} --max-model-len {len}"
    )
    made = drafted(recipe)
    assert "max_model_len" not in made.data["launch"] and "fork" not in made.data["engine"]
    assert {"{len}", "--max-model-len {len}"} <= set(named(made))


def test_flags_in_a_file_that_the_source_writes_are_flags() -> None:
    made = drafted(
        "cat > c.yml <<EOF\nmodel: o/n\nmax-model-len: 5\nseed: 7\nasync-scheduling: true\nconfig: c.yml\nEOF\n"
        "vllm serve --config ./c.yml --max-model-len 9"
    )
    assert made.model == "o/n"
    assert made.data["launch"] == made.data["launch"] | {"max_model_len": 9, "seed": 7, "async_scheduling": True}
    assert "config" not in made.data["launch"]
    made = drafted("N=3\ncat > c.yml <<EOF\nmax_batch_size: $N\nEOF\ntrtllm-serve o/n --extra_llm_api_options ./c.yml")
    assert made.data["launch"]["extra_llm_api_options"] == {"max_batch_size": 3}


def test_the_other_nodes_commands_are_no_second_launch() -> None:
    one = "docker run i:1 vllm serve o/n -tp 2 --nnodes 2 --master-addr 10.0.0.1 --node-rank"
    made = drafted(f"{one} 0\n{one} 1 --headless\nvllm serve other/model\n")
    whys = [why for what, why in named(made).items() if what.startswith("start.sh:")]
    assert any("another node's rank" in why for why in whys) and any("another start" in why for why in whys)
    copies = "vllm serve o/n -dp 2\nvllm serve o/n -dp 2 --headless --data-parallel-start-rank 1"
    assert "another node's rank, in the same words" in named(drafted(copies)).values()


def test_more_sparks_than_a_launch_has_is_a_finding() -> None:
    assert drafted("sglang serve --model-path o/n --tp 16").findings[0].rule == "too-many-nodes"


@pytest.mark.parametrize(
    ("image", "release"),
    [
        ("vllm/vllm-openai:v0.19.0-cu130", "0.19.0"),
        ("lmsysorg/sglang:v0.5.12.post1", "0.5.12.post1"),
        ("nvcr.io/nvidia/vllm:26.03-py3", ""),
        ("somebody/vllm:0.1.1", ""),
        ("vllm/vllm-openai:nightly", ""),
        ("localhost/sparkloom/llama.cpp:b8399-sm121", "b8399"),
    ],
)
def test_the_release_in_an_images_tag(image: str, release: str) -> None:
    engine = next(name for name in ("sglang", "llama", "vllm") if name in image).replace("llama", "llamacpp")
    told = spoken.of(engine, ["--help"], image)
    assert told.sure is bool(release) and (told.release == release or not release)


def test_facts_of_another_packing_are_its_shape_and_say_so() -> None:
    same = known_models.facts_of("nvidia/Qwen3.5-397B-A17B-NVFP4")
    other = known_models.facts_of("Intel/Qwen3.5-397B-A17B-int4-AutoRound")
    assert same and same.sure and other and not other.sure
    assert other.model["layers"] == same.model["layers"] and other.model["checkpoint"] == {"packing": "auto-round"}
    assert other.model["precision"]["experts"] == "int4-g128" and "revision" not in other.model
    assert known_models.facts_of("somebody/Unheard-Of-3B") is None


FLAGS: dict[str, list[Any]] = {}
for _engine in ("vllm", "sglang"):
    _catalog = spoken.of(_engine, [], "").catalog
    assert _catalog is not None
    FLAGS[_engine] = [flag for flag in _catalog.flags() if flag.name.startswith("--") and flag.action != "exit"]


def value(flag: Any) -> st.SearchStrategy[list[str]]:
    if not flag.takes_value:
        return st.just([])
    if flag.choices:
        return st.sampled_from([[str(choice)] for choice in flag.choices])
    texts = {"int": st.integers(0, 9999).map(str), "float": st.sampled_from(["0.5", "0.80", "1e-3"])}
    texts |= dict.fromkeys(("json", "json_object"), st.just('{"a":{"b":1}}'))
    return texts.get(flag.type, st.sampled_from(["plain", "org/name", "a,b", "$x", "with space"])).map(
        lambda text: [text]
    )


@settings(max_examples=thrown(150))
@given(st.data(), st.sampled_from(sorted(FLAGS)))
def test_every_flag_stands_in_the_profile_or_in_the_remainder(data: st.DataObject, engine: str) -> None:
    chosen = data.draw(st.lists(st.sampled_from(FLAGS[engine]), unique_by=lambda flag: flag.name, max_size=12))
    words = ["org/name"] if engine == "vllm" else ["--model-path", "org/name"]
    given_words = [(flag, data.draw(value(flag))) for flag in chosen if flag.name not in ("--model", "--model-path")]
    for flag, values in given_words:
        words += [flag.name, *values]
    start = Started(engine, words, "x:1")
    told = spoken.of(engine, words, "")
    assert told.catalog is not None
    said = command.Reading(told.catalog, start, engines.get(engine), True).read()
    left = " ".join(leftover.what for leftover in said.leftover)
    for flag, _ in given_words:
        key = flag.name.lstrip("-").replace("-", "_")
        placed = key in engines.get(engine).placed or key in engines.get(engine).reserved or key == "revision"
        assert key in said.flags or flag.name in left or placed, flag.name


def test_somebodys_own_count_of_versions_is_no_release() -> None:
    """A fork's v18.1 is no vLLM 18.1: no release that is known begins so."""
    made = drafted("docker run ghcr.io/somebody/vllm-moon:v18.1-vision vllm serve org/name --max-num-seqs 4")
    assert made.spoken and not made.spoken.sure and made.spoken.release == spoken.of("vllm", [], "").release
    assert drafted("docker run vllm/vllm-openai:v1.0.0 vllm serve o/n").spoken.release == "1.0.0"  # type: ignore[union-attr]


def test_a_folder_on_the_way_to_a_model_is_no_publisher() -> None:
    for path in ("/root/models/models14/Moon-7B", "/path/to/Moon-7B", "/home/Moon-7B"):
        assert drafted(f"vllm serve {path}").model == "unknown/Moon-7B"
    assert drafted("vllm serve /models/org/Moon-7B").model == "org/Moon-7B"
