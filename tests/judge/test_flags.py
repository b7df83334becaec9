"""Launch keys against the catalogs: a slip is refused, another release's flag or value is a finding."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparkloom import case
from sparkloom.base.errors import InputError
from sparkloom.base.finding import Finding
from sparkloom.inputs import profile as profiles
from sparkloom.inputs.catalogs import releases
from sparkloom.launch import engines

ULTRA = "nvidia--nemotron-3-ultra-550b-a55b-nvfp4"
VLLM = "nvidia--nemotron-3-super-120b-a12b-nvfp4--vllm-1node"


def findings(profile: str, *overrides: str, release: str | None = None) -> list[Finding]:
    found = case.judge(profile, overrides=overrides, release=release).findings
    return [finding for finding in found if finding.rule.startswith("flag-")]


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("launch.mem_fraction_statik=0.9", "did you mean 'mem_fraction_static'?"),
        ("launch.disable_deep_gemm=true", "no release of sglang has such a flag"),
        ("launch.mem-fraction-static=0.9", "write 'mem_fraction_static'"),
        ("launch.gpu_memory_utilization=0.9", "no release of sglang has such a flag"),
        ("launch.tp=4", "no release of sglang has such a flag"),  # an abbreviation that works in some releases only
    ],
)
def test_a_key_that_no_release_has_is_refused_with_its_place(override: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        case.judge(ULTRA, overrides=[override])
    (problem,) = caught.value.problems
    assert said in problem.message and problem.rule == "unknown-flag"
    assert problem.file == f"--set {override}"


@pytest.mark.parametrize(
    ("override", "rule", "said"),
    [
        ("launch.attention_backend=flashinfr", "flag-choice", "flashinfr"),
        ("launch.context_length=long", "flag-type", "a whole number"),
        ("launch.mem_fraction_static=high", "flag-type", "a number"),
        ("launch.mem_fraction_static=NaN", "flag-type", "a finite number"),
        ("launch.mem_fraction_static=1e999", "flag-type", "a finite number"),
        ("launch.trust_remote_code='yes'", "flag-extra-value", "takes no value"),
        ("launch.cuda_graph_max_bs=true", "flag-missing-value", "needs a value"),
        ("launch.chunked_prefill_size=[1, 2]", "flag-extra-value", "takes one value"),
    ],
)
def test_a_value_that_the_release_refuses_is_an_error(override: str, rule: str, said: str) -> None:
    (finding,) = findings(ULTRA, override)
    assert (finding.rule, finding.severity) == (rule, "error")
    assert said in finding.message and finding.where.startswith("--set ") and finding.fix


def test_a_flag_of_another_release_is_an_error_that_says_which() -> None:
    (finding,) = findings(ULTRA, "launch.dsa_decode_backend=tilelang")
    assert (finding.rule, finding.severity) == ("flag-unknown", "error")
    assert "no flag of sglang 0.5.12" in finding.message and "0.5.13" in finding.message


def test_the_dialect_follows_the_release() -> None:
    assert findings(ULTRA, release="0.5.23") == []
    argv = case.judge(ULTRA, release="0.5.23").launch.ranks[0].argv
    assert "--cuda-graph-max-bs-decode" in argv and "--cuda-graph-max-bs" not in argv


def test_a_release_without_a_parser_of_that_name_is_an_error() -> None:
    found = {finding.rule: finding.message for finding in findings(ULTRA, release="0.5.9")}
    assert "nemotron_3" in found["flag-choice"]
    assert "--disable-piecewise-cuda-graph" in found["flag-unknown"]


def test_an_unregistered_name_is_an_error_although_the_parser_lets_it_through() -> None:
    (finding,) = findings(ULTRA, "launch.tool_call_parser=nobodys")
    assert (finding.rule, finding.severity) == ("flag-choice", "error")
    # ModelOpt's checkpoints say it themselves, and vLLM takes their word: NVIDIA's own guide starts them with `fp4`
    (finding,) = findings(VLLM, "launch.quantization=fp4")
    assert (finding.rule, finding.severity) == ("flag-unregistered", "warning")
    assert "did you mean modelopt_fp4?" in finding.message, "mxfp4 is spelled alike, and another format"


def test_a_variable_that_the_release_does_not_read_is_a_warning() -> None:
    (finding,) = findings(ULTRA, "env.SGLANG_ENABLE_JIT_DEEPGEM='0'")
    assert (finding.rule, finding.severity) == ("flag-unknown", "warning")


def test_a_word_that_is_no_truth_value_is_an_error() -> None:
    (finding,) = findings(ULTRA, "env.SGLANG_ENABLE_JIT_DEEPGEMM='off'")
    assert (finding.rule, finding.severity) == ("flag-type", "error")


@pytest.mark.parametrize(("release", "said"), [("0.5.24", "judged by sglang 0.5.23"), ("0.5.12", None)])
def test_a_release_without_a_catalog_is_said_aloud(release: str, said: str | None) -> None:
    found = [f for f in case.judge(ULTRA, release=release).findings if f.rule == "release-without-catalog"]
    assert [f.severity for f in found] == (["warning"] if said else [])
    assert not said or said in found[0].message


TRTLLM = "nvidia--nemotron-3-super-120b-a12b-nvfp4--trtllm-1node"
GGUF = "unsloth--nemotron-3-ultra-550b-a55b-gguf--2node"
CACHE = "launch.extra_llm_api_options.kv_cache_config.free_gpu_memory_fraction"


@pytest.mark.parametrize(
    ("profile", "override"),
    [
        (ULTRA, "launch.mem_fraction_static=9.0"),
        (ULTRA, "launch.mem_fraction_static='9.0'"),
        (ULTRA, "launch.mem_fraction_static=0"),
        (ULTRA, "launch.mem_fraction_static=1"),
        (ULTRA, "launch.mem_fraction_static=-1"),
        (ULTRA, "launch.context_length=-5"),
        (ULTRA, "launch.context_length=0"),
        (ULTRA, "launch.max_running_requests=0"),
        (ULTRA, "launch.max_mamba_cache_size=-48"),
        (ULTRA, "launch.cuda_graph_max_bs=0"),
        (ULTRA, "launch.chunked_prefill_size=-2"),
        (VLLM, "launch.gpu_memory_utilization=9.0"),
        (VLLM, "launch.gpu_memory_utilization=0"),
        (VLLM, "launch.max_model_len=-100"),
        (VLLM, "launch.max_num_seqs=0"),
        (VLLM, "launch.speculative_config.num_speculative_tokens=0"),
        (TRTLLM, "launch.max_batch_size=0"),
        (TRTLLM, f"{CACHE}=9.0"),
        (GGUF, "launch.ctx_size=-1"),
    ],
)
def test_a_number_out_of_range_is_refused_by_lint_and_render(profile: str, override: str) -> None:
    ranged = [finding for finding in findings(profile, override) if finding.rule == "flag-range"]
    assert len(ranged) == 1 and ranged[0].severity == "error", ranged
    assert override.split("=")[0].split(".", 1)[1] in ranged[0].message and "expected a number" in ranged[0].message
    assert ranged[0].where.startswith("--set ")
    with pytest.raises(case.Refused):
        case.render(profile, overrides=[override])


@pytest.mark.parametrize(
    ("profile", "override"),
    [
        (ULTRA, "launch.mem_fraction_static=0.999"),
        (ULTRA, "launch.chunked_prefill_size=-1"),
        (VLLM, "launch.gpu_memory_utilization=1"),
        (VLLM, "launch.max_model_len=-1"),
        (VLLM, "launch.max_model_len=auto"),
        (GGUF, "launch.ctx_size=0"),
    ],
)
def test_numbers_that_the_engine_gives_a_meaning_are_in_range(profile: str, override: str) -> None:
    assert findings(profile, override) == []


def test_a_number_in_quotes_inside_a_mapping_is_named() -> None:
    (finding,) = findings(TRTLLM, f"{CACHE}='0.5'")
    assert (finding.rule, finding.severity) == ("flag-type", "error") and "without quotes" in finding.message


@pytest.mark.parametrize("name", profiles.names())
def test_no_shipped_profile_is_out_of_range(name: str) -> None:
    assert [finding for finding in findings(name) if finding.rule == "flag-range"] == []


QWEN = "nvidia--qwen3.5-397b-a17b-nvfp4--mtp"


@pytest.mark.parametrize("release", ["0.5.14", "0.5.19", "0.5.23"])
def test_a_variable_that_is_gone_is_a_line_to_remove_and_no_reason_to_refuse(release: str) -> None:
    (finding,) = [f for f in findings(QWEN, release=release) if "SGLANG_ENABLE_SPEC_V2" in f.message]
    assert finding.severity == "warning"
    assert "remove" in finding.fix and finding.where.startswith(f"model_profiles/{QWEN}.yml:")


@pytest.mark.parametrize(("release", "needed"), [("0.5.10", True), ("0.5.11", False), ("0.5.13", False)])
def test_the_variable_is_asked_for_where_it_is_off_by_default(release: str, needed: bool) -> None:
    judged = case.judge(QWEN, overrides=["env.SGLANG_ENABLE_SPEC_V2="], release=release)
    found = [f for f in judged.errors if f.rule == "hybrid-speculation-radix"]
    assert bool(found) is needed
    assert not needed or "SGLANG_ENABLE_SPEC_V2" in found[0].fix


@pytest.mark.parametrize(
    ("profile", "key", "said"),
    [
        (ULTRA, "mem_fraction", "did you mean 'mem_fraction_static'?"),
        (ULTRA, "gpu_memory_utilization", "vllm calls it 'gpu_memory_utilization', sglang 'mem_fraction_static'"),
        (ULTRA, "max_model_len", "vllm calls it 'max_model_len', sglang 'context_length'"),
        (ULTRA, "max_num_seqs", "sglang 'max_running_requests'"),
        (ULTRA, "tp_sise", "tp_size"),
        (ULTRA, "tp", "write launch.parallel.tp"),
        (VLLM, "mem_fraction", "sglang calls it 'mem_fraction_static', vllm 'gpu_memory_utilization'"),
        (VLLM, "mem_fraction_static", "vllm 'gpu_memory_utilization'"),
        (VLLM, "gpu_memory_utilisation", "did you mean 'gpu_memory_utilization'?"),
        (VLLM, "context_length", "vllm 'max_model_len'"),
        (GGUF, "context_length", "llamacpp 'ctx_size'"),
        (TRTLLM, "mem_fraction", "trtllm 'kv_cache_free_gpu_memory_fraction'"),
    ],
)
def test_a_near_miss_is_named_by_what_it_means(profile: str, key: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        case.judge(profile, overrides=[f"launch.{key}=1"])
    assert said in str(caught.value)


@pytest.mark.parametrize("name", engines.names())
def test_every_name_that_an_engine_is_said_to_have_is_a_flag_of_it(name: str) -> None:
    release = releases.known(name)[-1]
    catalog = engines.catalog(name, release)
    older = [engines.catalog(name, other) for other in releases.known(name)]
    for flag in (*engines.get(name).called.values(), *(key.split(".")[0] for key in engines.get(name).ranges)):
        assert catalog.flag(flag) or any(other.flag(flag) for other in older), flag


def test_a_rule_points_at_the_flag_in_the_spelling_that_the_profile_has(tmp_path: Path) -> None:
    text = (profiles.PROFILES / f"{ULTRA}.yml").read_text().replace("release: 0.5.12\n", "release: 0.5.23\n", 1)
    path = tmp_path / "own.yml"
    path.write_text(text.replace("\n  cuda_graph_max_bs: 8\n", "\n  cuda_graph_max_bs_decode: 8\n", 1))
    judged = case.judge(str(path), overrides=["launch.max_running_requests=64"], release="0.5.23")
    (found,) = [finding for finding in judged.findings if finding.rule == "batch-beyond-graphs"]
    line = next(n for n, said in enumerate(path.read_text().splitlines(), 1) if "cuda_graph_max_bs_decode" in said)
    assert found.where == f"{path}:{line}"


def test_a_release_asked_for_on_the_command_line_is_blamed_there() -> None:
    (finding,) = [f for f in case.judge(ULTRA, release="0.5.24").findings if f.rule == "release-without-catalog"]
    assert finding.where == "--engine-version 0.5.24"
