"""What a profile says about itself is computed: its best evidence, its status, and where it departs from both."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparkloom.inputs import profile
from sparkloom.judge import profile_status

ULTRA = "nvidia--nemotron-3-ultra-550b-a55b-nvfp4"
PUBLIC = {"name", "model", "engine", "release", "image", "nodes", "tp", "ep", "status", "n1", "n4", "n8", "source"}

CONFIG = "{mem_fraction_static: 0.9, cuda_graph_max_bs: 8}"
MEASURED = f"{{claim: c, status: measured, source: log, config: {CONFIG}, numbers: {{n8: 42.0}}}}"
VENDOR = "{claim: c, status: vendor, source: guide, config: {mem_fraction_static: 0.7}, numbers: {n8: 99.0}}"
REMARK = "{claim: crashes otherwise, status: measured, source: log}"


def with_evidence(tmp_path: Path, *entries: str, **options: object) -> profile.LoadedProfile:
    text = (profile.PROFILES / f"{ULTRA}.yml").read_text()
    head = text[: text.index("\nevidence:")]
    listed = "".join(f"\n  - {entry}" for entry in entries)
    path = tmp_path / "own.yml"
    path.write_text(f"{head}\nevidence:{listed or ' []'}\n")
    return profile.load(path, **options)  # type: ignore[arg-type]


def test_a_fast_claim_does_not_beat_a_measurement(tmp_path: Path) -> None:
    own = with_evidence(tmp_path, VENDOR, MEASURED, REMARK)
    best = profile_status.best_evidence(own.profile)
    assert best and best.source == "log" and best.numbers
    assert profile_status.status(own.profile) == "measured"


def test_easy_text_does_not_beat_plain_text(tmp_path: Path) -> None:
    counting = MEASURED.replace("42.0", "402.0").replace("source: log", "source: counted, prompt: {content: counting}")
    best = profile_status.best_evidence(with_evidence(tmp_path, counting, MEASURED).profile)
    assert best and best.source == "log"


def test_remarks_alone_measure_nothing(tmp_path: Path) -> None:
    for entries in ((), (REMARK,)):
        own = with_evidence(tmp_path, *entries)
        assert profile_status.status(own.profile) == "unvalidated"
        assert profile_status.best_evidence(own.profile) is None
        (finding,) = profile_status.check(own)
        assert finding.severity == "info" and "nothing is recorded that was run" in finding.message


def test_a_launch_as_measured_has_nothing_to_say(tmp_path: Path) -> None:
    own = with_evidence(tmp_path, MEASURED)
    assert profile_status.differences(own.profile) == []
    assert profile_status.check(own) == []


def test_a_changed_value_is_named_with_both(tmp_path: Path) -> None:
    own = with_evidence(tmp_path, MEASURED, overrides=["launch.mem_fraction_static=0.88"])
    assert profile_status.differences(own.profile) == [("mem_fraction_static", 0.88, 0.9)]
    (finding,) = profile_status.check(own)
    assert (
        "the shipped launch is not the best measured run (n8 42 tok/s): mem_fraction_static 0.88 instead of 0.9"
        in finding.message
    )
    assert finding.where.startswith(str(tmp_path / "own.yml")) or finding.where.split(":")[0].endswith("own.yml")


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ("{disable_cuda_graph: false}", []),  # off and unset give one and the same command
        ("{disable_cuda_graph: true}", [("disable_cuda_graph", None, True)]),
        ("{parallel: {nodes: 4, tp: 4, ep: 1}}", [("parallel.ep", 4, 1)]),
        ("{env.SGLANG_ENABLE_JIT_DEEPGEMM: '0'}", []),
        ("{env.SGLANG_ENABLE_JIT_DEEPGEMM: '1'}", [("env.SGLANG_ENABLE_JIT_DEEPGEMM", "0", "1")]),
        ("{transport: socket}", [("transport", "roce", "socket")]),
        ("{transport: roce, kv_cache_dtype: fp8_e4m3}", []),
    ],
)
def test_what_counts_as_a_difference(tmp_path: Path, config: str, expected: list[object]) -> None:
    own = with_evidence(tmp_path, f"{{claim: c, status: measured, source: s, config: {config}, numbers: {{n1: 1.0}}}}")
    assert profile_status.differences(own.profile) == expected


def test_another_release_or_image_is_a_difference(tmp_path: Path) -> None:
    own = with_evidence(tmp_path, MEASURED.replace("source: log", 'source: log, release: "0.5.10", image: other:1'))
    assert [difference.key for difference in profile_status.differences(own.profile)] == [
        "engine.release",
        "engine.image",
    ]


def test_figures_without_flags_are_called_so(tmp_path: Path) -> None:
    own = with_evidence(
        tmp_path, "{claim: c, status: measured, source: s, config: {parallel: {tp: 4}}, numbers: {n8: 5.0}}"
    )
    assert "came without their flags" in profile_status.sentence(own.profile)


def test_ultra_says_that_its_fastest_run_had_a_smaller_reserve() -> None:
    loaded = profile.load(ULTRA)
    assert profile_status.differences(loaded.profile) == [("mem_fraction_static", 0.9, 0.88)]
    best = profile_status.best_evidence(loaded.profile)
    assert best and best.numbers and best.numbers.n8 == 43.4


def test_the_listing_has_every_profile_and_the_documented_keys() -> None:
    listed = profile_status.listing()
    assert [entry["name"] for entry in listed] == profile.names()
    assert all(entry.keys() >= PUBLIC for entry in listed)
    (ultra,) = [entry for entry in listed if entry["name"] == ULTRA]
    assert (ultra["n1"], ultra["n4"], ultra["n8"], ultra["status"]) == (10.2, 29.3, 43.4, "measured")
