"""Flag values by their catalog's types: what YAML made of the text makes no difference to anybody."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparkloom import case
from sparkloom.inputs import profile

ULTRA = "nvidia--nemotron-3-ultra-550b-a55b-nvfp4"
VLLM = "nvidia--nemotron-3-super-120b-a12b-nvfp4--vllm-1node"
TRTLLM = "nvidia--nemotron-3-super-120b-a12b-nvfp4--trtllm-1node"
GGUF = "unsloth--nemotron-3-ultra-550b-a55b-gguf--2node"

SAME = [
    (ULTRA, "mem_fraction_static", "0.85", "'0.85'"),
    (ULTRA, "context_length", "131072", "'131072'"),
    (ULTRA, "context_length", "128000", "128k"),
    (ULTRA, "max_mamba_cache_size", "30", "'30'"),
    (ULTRA, "max_running_requests", "4", "'4'"),
    (ULTRA, "cuda_graph_max_bs", "64", "'64'"),
    (VLLM, "gpu_memory_utilization", "0.98", "'0.98'"),
    (VLLM, "max_model_len", "524288", "512K"),
    (VLLM, "max_num_seqs", "64", "'64'"),
    (VLLM, "speculative_config", "{method: mtp, num_speculative_tokens: 2}",
     """'{"method": "mtp", "num_speculative_tokens": 2}'"""),
    (TRTLLM, "max_seq_len", "262144", "'262144'"),
    (GGUF, "ctx_size", "16384", "'16384'"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "flag", "plain", "quoted"), SAME)
def test_a_quoted_value_is_the_value(name: str, flag: str, plain: str, quoted: str) -> None:
    unquoted, text = (case.plan(name, overrides=[f"launch.{flag}={value}"]) for value in (plain, quoted))
    for part in ("fits", "reason", "memory", "limits", "speed", "change_set"):
        assert unquoted[part] == text[part], part
    assert [rank["argv"] for rank in unquoted["launch"]["ranks"]] == [rank["argv"] for rank in text["launch"]["ranks"]]
    rules = [[finding["rule"] for finding in plan["findings"]] for plan in (unquoted, text)]
    assert rules[0] == rules[1]


def test_an_adapter_translates_a_quoted_value_too() -> None:
    judged = case.judge(ULTRA, overrides=["launch.cuda_graph_max_bs='64'"], release="0.5.23")
    assert judged.launch.view().whole("cuda_graph_max_bs") == 64


def test_a_quoted_value_of_a_measured_run_is_that_value(tmp_path: Path) -> None:
    text = (profile.PROFILES / f"{ULTRA}.yml").read_text()
    assert text.count("mem_fraction_static: 0.88") == 1
    path = tmp_path / "own.yml"
    path.write_text(text.replace("mem_fraction_static: 0.88", 'mem_fraction_static: "0.88"'))
    quoted, plain = case.judge(str(path)), case.judge(ULTRA)
    assert [finding.message for finding in quoted.findings] == [finding.message for finding in plain.findings]


def test_what_cannot_be_read_stays_for_the_flag_check() -> None:
    judged = case.judge(ULTRA, overrides=["launch.mem_fraction_static=high"])
    assert [finding.rule for finding in judged.errors if finding.rule.startswith("flag-")] == ["flag-type"]
