"""Logs as they arrive: coloured, prefixed, several ranks mixed, and sometimes of no known cause."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
import yaml

from sparkloom.base.errors import InputError
from sparkloom.base.finding import ORDER
from sparkloom.judge import diagnose, rules
from tests.places import DATA

SAMPLES: dict[str, str] = yaml.safe_load((DATA / "rule_logs.yml").read_text())
FIX = {rule.id: rule.fix for rule in rules.every()}
PREFIXES = (
    "",
    "\x1b[31m[rank2]: \x1b[0m",
    "(EngineCore pid=94) ",
    "[2026-06-01 10:00:00 TP3 EP3] ",
    "[pod/ultra-2/engine] 2026-06-01T10:00:00.123456789Z ",
    "2026-06-01T10:00:00.123456789Z stderr F [rank1]: ",
    "spark2:881:1204 [0] ",
    "ultra-3  | ",
)


@pytest.mark.parametrize("prefix", PREFIXES, ids=repr)
@pytest.mark.parametrize("rule", sorted(SAMPLES))
def test_a_known_cause_is_found_behind_any_prefix(rule: str, prefix: str) -> None:
    text = "\n".join(prefix + line for line in SAMPLES[rule].splitlines())
    result = diagnose.diagnose(f"INFO loading\n{text}\nINFO shutting down\n")
    assert rule in [match["rule"] for match in result["matches"]]
    found = next(match for match in result["matches"] if match["rule"] == rule)
    assert found["fix"] == FIX[rule] and found["line_number"] >= 2 and found["count"] >= 1
    assert "\x1b" not in found["line"]


def test_ranks_are_named() -> None:
    text = "\n".join(f"[rank{rank}]: AssertionError: mismatch in expected `n`" for rank in (3, 0, 10))
    (match,) = diagnose.diagnose(text)["matches"]
    assert match["rule"] == "ungated-experts-cutlass-moe"
    assert match["ranks"] == ["0", "3", "10"] and match["count"] == 3


def test_errors_come_before_hints() -> None:
    text = "error in kvcache.cuh:196\nRuntimeError: cuDNN is not available.\n"
    severities = [match["severity"] for match in diagnose.diagnose(text)["matches"]]
    assert severities == sorted(severities, key=lambda severity: ORDER[severity]) and len(severities) == 2


def test_an_unknown_failure_gives_the_three_most_telling_lines() -> None:
    noise = [
        f"[2026-06-01 10:00:{i:02d}] INFO Prefill batch, #new-token: {i}, input throughput: {i}.0" for i in range(60)
    ]
    telling = ["NCCL WARN Some internal failure", "Traceback (most recent call last):", '  File "x.py", line 3, in f']
    end = ["ValueError: the frobnicator is bent", "RuntimeError: worker 3 died", "INFO bye"]
    result = diagnose.diagnose("\n".join([*noise, *telling, *end]))
    assert result["matches"] == []
    assert result["lines"] == [
        "NCCL WARN Some internal failure",
        "ValueError: the frobnicator is bent",
        "RuntimeError: worker 3 died",
    ]


def test_repeated_lines_count_once() -> None:
    text = "\n".join(f"[rank{i}]: ValueError: bent at 0x{i:x}" for i in range(9)) + "\nOSError: disk\n"
    assert diagnose.diagnose(text)["lines"] == ["ValueError: bent at 0x8", "OSError: disk"]


HEALTHY = """\
[2026-06-01 10:00:00] server_args=ServerArgs(mem_fraction_static=0.9, max_mamba_cache_size=48, \
watchdog_timeout=300, kv_cache_dtype='fp8_e4m3', moe_runner_backend='flashinfer_cutlass', \
json_model_override_args='{}', speculative_eagle_topk=1, speculative_moe_runner_backend=None)
spark1:77:77 [0] NCCL INFO NVLS multicast support is not available on dev 0
spark1:77:77 [0] NCCL INFO NET/IB : Using [0]rocep1s0f0v1:1/RoCE [1]roceP2p1s0f0v1:1/RoCE [RO]; OOB net1:10.0.0.1<0>
(EngineCore pid=94) INFO speculative_config=SpeculativeConfig(method='mtp', num_spec_tokens=3, moe_backend='triton')
[2026-06-01 10:08:00 TP0] Capture cuda graph end. Time elapsed: 12.51 s. mem usage=2.70 GB. avail mem=15.10 GB.
[2026-06-01 10:08:10 TP0] The server is fired up and ready to roll!
"""


def test_a_healthy_log_has_no_cause_and_no_lines() -> None:
    assert diagnose.diagnose(HEALTHY) == {"matches": [], "lines": [], "noise": []}


def test_a_whole_start_on_a_gpu_has_no_cause_although_it_prints_every_argument() -> None:
    """Its arguments once were the cause of whatever ended that engine later: `max_lora_rank=None`."""
    whole = (DATA / "healthy_sglang_0.5.12.log").read_text()
    assert "max_lora_rank=None" in whole and "fired up" in whole
    assert diagnose.diagnose(whole)["matches"] == []


def test_empty_and_binary_input_is_refused_and_gzip_read(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert diagnose.diagnose("") == {"matches": [], "lines": [], "noise": []}
    for content, words in ((bytes(range(256)) * 64, "is no text"), (b"", "is empty"), (b"\0" * 99, "zero bytes")):
        log.write_bytes(content)
        with pytest.raises(InputError, match=words):
            diagnose.diagnose_files([log])
    log.write_bytes(gzip.compress(b"RuntimeError: cuDNN is not available.\n"))
    assert [match["rule"] for match in diagnose.diagnose_files([log])["matches"]] == ["fp4-gemm-cudnn-missing"]
    log.write_bytes(gzip.compress(b"RuntimeError: cuDNN is not available.\n")[:20])
    with pytest.raises(InputError, match="damaged gzip"):
        diagnose.diagnose_files([log])


def test_a_missing_log_is_unusable_input(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        diagnose.diagnose_files([tmp_path / "no.log"])


def test_several_logs_are_one_case(tmp_path: Path) -> None:
    (tmp_path / "head").write_text("INFO fine\n")
    (tmp_path / "worker").write_text("RuntimeError: cuDNN is not available.\n")
    result = diagnose.diagnose_files([tmp_path / "head", tmp_path / "worker"])
    assert [match["rule"] for match in result["matches"]] == ["fp4-gemm-cudnn-missing"]


def test_only_the_last_start_of_an_engine_is_judged() -> None:
    from sparkloom.onnode import loglines

    text = "[sparkloom rank 0 epoch 1] engine: x\n[rank 0 epoch 1] ncclRemoteError\n[rank 0 epoch 2] NET/IB\n"
    assert loglines.last_epoch(text) == "[rank 0 epoch 2] NET/IB"
    assert loglines.last_epoch("no supervisor\nhere") == "no supervisor\nhere"
