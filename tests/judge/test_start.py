"""One verdict of four: each line of docs/reference/exit-status.md's table, and what may not soften another."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparkloom import case
from sparkloom.base.assumption import Assumption
from sparkloom.base.finding import Finding, Severity
from sparkloom.inputs import site_memory
from sparkloom.judge.start import start

MEMORY = Assumption("memory", "free memory", "as others had it", "-i SITE", decides=False)
FACTS = Assumption("facts", "model a/b", "no facts of it; ask", "--config config.json")
RELEASE = Assumption("release", "release", "the tag names none", "--engine-version X")
FLAG = Assumption("flags", "--odd", "no such flag; kept", "--set launch.odd=")
GLM, OSS = "nvidia--glm-4.7-nvfp4", "openai--gpt-oss-120b"


def finding(rule: str, severity: Severity) -> Finding:
    return Finding("x.yml:1", rule, f"{rule} speaks. More of it", "", "a cure", severity)


OURS, UNDECIDED = finding("remote-code-unpinned", "error"), finding("flag-undecided", "warning")
WRONG, TIGHT = finding("flag-unknown", "error"), finding("near-guard-floor", "warning")


@pytest.mark.parametrize(
    ("findings", "fits", "assumed", "measured", "verdict", "why"),
    [
        ([], True, [], True, "starts", ""),
        ([], True, [MEMORY, FLAG], True, "starts", ""),  # it ran: what its author says of a flag decides nothing
        ([finding("near-guard-floor", "info")], True, [], True, "starts", ""),
        ([], True, [MEMORY], False, "should start", ""),
        ([], True, [MEMORY, FACTS, FLAG], False, "may not start", "no facts of it"),
        ([], None, [RELEASE], False, "may not start", "its release is a guess"),
        ([], True, [FLAG], False, "may not start", "--odd: no such flag"),
        ([], None, [MEMORY], True, "may not start", "better end"),
        ([TIGHT], True, [], True, "may not start", "near-guard-floor speaks"),
        ([TIGHT, WRONG], True, [], True, "will not start", "flag-unknown speaks"),
        ([WRONG], None, [FACTS], False, "will not start", "flag-unknown speaks"),
        ([], False, [FACTS], False, "will not start", "does not fit"),
        ([UNDECIDED], True, [RELEASE], False, "may not start", "flag-undecided speaks"),
        ([UNDECIDED], True, [], True, "starts", ""),
        ([OURS], True, [], False, "will not start", "refused here: remote-code-unpinned speaks"),
        ([OURS, WRONG], True, [], False, "will not start", "flag-unknown speaks"),
    ],
)
def test_the_table(
    findings: list[Finding], fits: bool | None, assumed: list[Assumption], measured: bool, verdict: str, why: str
) -> None:
    told = start(findings, fits, assumed, measured)
    assert told.verdict == verdict and why in told.why and told.sure
    assert bool(told.why) == ("not" in verdict) and "More" not in told.why


def test_what_we_refuse_says_what_the_engine_would_do() -> None:
    told = start([OURS], None, [FACTS])
    assert told.sure.startswith("by Sparkloom's own rule remote-code-unpinned, not by the engine")
    assert told.sure.endswith("with its fix: may not start: no facts of it") and told.surer == "--config config.json"


@pytest.mark.parametrize(
    ("command", "verdict", "why"),
    [  # 0.25.0 has no catalog: 0.24.0 lacks the method, 0.25.1 has it
        (
            'vllm/vllm-openai:v0.25.0 vllm serve a/B-27B-FP8 --speculative-config \'{"method":"dspark"}\'',
            "may not",
            "dspark",
        ),
        ("vllm/vllm-openai:v0.25.0 vllm serve a/B-27B-FP8 --dtype fp4", "will not", "--dtype"),  # nor takes 0.25.1
        ("vllm/vllm-openai:v0.24.0 vllm serve a/B-27B-FP8 --dtype fp4", "will not", "--dtype"),
        (
            "some/sglang:v0 sglang serve --model-path a/B-27B-FP8 --enable-watermark --cuda-graph-bs 1",
            "may not",
            "--cuda-graph-bs",
        ),
    ],
)
def test_a_neighbours_refusal_is_not_the_releases_own(command: str, verdict: str, why: str) -> None:
    told = case.take_in(f"docker run {command}", "x.sh")["start"]
    assert told["verdict"].startswith(verdict) and why in told["why"], told


def test_what_was_measured_is_that_launch_and_no_other() -> None:
    told = {
        "": "should start",
        "launch.mem_fraction_static=0.6": "starts",  # as the best run had it
        "launch.schedule_conservativeness=0.5": "should start",
    }
    for value, verdict in told.items():
        assert case.plan(GLM, overrides=[value] if value else [])["start"]["verdict"] == verdict, value
    assert case.plan(OSS)["start"]["verdict"] == "starts"
    assert case.plan(OSS, release="0.19.0")["start"]["verdict"] != "starts"


def test_memory_that_preflight_measured_is_assumed_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert [one["about"] for one in case.plan(GLM)["assumed"]] == ["memory"]
    measured = tmp_path / "memory.json"
    monkeypatch.setattr(site_memory, "path", lambda site: measured)
    site_memory.keep(measured, {f"spark{n}": (108.0, 110.0) for n in range(1, 5)}, "today")
    assert case.plan(GLM)["assumed"] == []
    assert "memory" not in [one["about"] for one in case.take_in("vllm serve openai/gpt-oss-120b", "x.sh")["assumed"]]


def test_a_draft_is_judged_as_its_recipe_was(tmp_path: Path) -> None:
    """Facts by a name, and a stranger's image: the file says so to whoever plans it later."""
    text = "docker run some/vllm:9 vllm serve Somebody/Qwen3.5-397B-A17B-FP8 --tensor-parallel-size 4"
    taken = case.take_in(text, "x.sh")
    written = tmp_path / "mine.yml"
    written.write_text(taken["text"])
    assert taken["start"]["verdict"] == "may not start" and taken["text"].count("\n# ~ ") == 3
    planned = case.plan(str(written))
    assert {"facts", "release"} <= {one["about"] for one in planned["assumed"]}
    assert planned["start"]["verdict"] in ("may not start", "will not start")
