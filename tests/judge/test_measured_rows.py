"""The rules against the measured rows: how many failures they foresee, and that they do not cheat."""

from __future__ import annotations

import inspect
import json
import random
from pathlib import Path
from typing import Any

import pytest

from scripts.docs import evidence_page
from sparkloom.base.errors import InputError
from sparkloom.inputs import inventory, profile
from sparkloom.judge import comparable, measured_rows
from sparkloom.launch import resolve
from tests.places import REPO

OUTCOMES = ("outcome", "symptom", "note", "n1", "n4", "n8", "n16", "ttft_n8", "ran", "id")
STRICT: dict[str, tuple[float, float]] = {"model": (0.85, 0.95), "image": (0.9, 0.95), "test log": (0.9, 0.95)}


@pytest.fixture(scope="module")
def scored() -> dict[str, Any]:
    return measured_rows.score(measured_rows.SHIPPED)


def test_recall_and_precision(scored: dict[str, Any]) -> None:
    assert scored["recall"] >= 0.90
    assert scored["precision"] >= 0.95


def test_unknown_is_no_way_out(scored: dict[str, Any]) -> None:
    assert scored["unknown"] <= 0.02 * scored["rows"]


def test_the_shape_of_a_score(scored: dict[str, Any]) -> None:
    assert list(scored) == ["rows", "tp", "fp", "fn", "tn", "unknown", "precision", "recall", "per_row"]
    assert scored["rows"] == 866 == sum(scored[key] for key in ("tp", "fp", "fn", "tn", "unknown"))
    assert len(scored["per_row"]) == 1080
    for item in scored["per_row"]:
        assert list(item) == ["id", "predicted", "rules"]
        assert item["predicted"] in ("ok", "fail", "unknown")
        assert bool(item["rules"]) == (item["predicted"] == "fail")
    json.dumps(scored)


def test_predictions_do_not_look_at_how_a_run_ended(scored: dict[str, Any], tmp_path: Path) -> None:
    """The same predictions with every outcome, note and figure taken away or shuffled, and ids replaced."""
    rows = [dict(row) for row in measured_rows.shipped()]
    shuffled = random.Random(7).sample(rows, len(rows))
    for number, (row, other) in enumerate(zip(rows, shuffled, strict=True)):
        row |= {key: other.get(key) for key in OUTCOMES if key != "id"} | {"id": f"row-{number}"}
        row["extra"] = {key: value for key, value in row["extra"].items() if key in measured_rows.ASIDE}
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows))
    again = measured_rows.score(path)["per_row"]
    assert [item["predicted"] for item in again] == [item["predicted"] for item in scored["per_row"]]


def test_rows_without_an_outcome_are_predicted_and_not_counted(tmp_path: Path) -> None:
    row = {"id": "x", "model": "google/gemma-4-31B-it", "attention_backend": "flashinfer", "disable_cuda_graph": False}
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(row) + "\n\n" + json.dumps(row | {"id": "y", "outcome": "ok", "ran": False}))
    scored = measured_rows.score(path)
    assert scored["rows"] == 0 and scored["recall"] is None and scored["precision"] is None
    assert [item["predicted"] for item in scored["per_row"]] == ["fail", "fail"]


def test_a_row_that_says_nothing_is_unknown() -> None:
    assert measured_rows.predict(measured_rows.view_of({"model": "acme/new-9B"})) == ("unknown", [])


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("{", 1),
        ('{"model": "a/b"}\n[1]', 2),
        ('{"id": 3}', 1),
        ('{"model": "a/b"}\n\n{,}', 3),
        ('{"model": "a/b"}\n' + "[" * 100_000, 2),
        ('{"model": "a/b", "tp": 1' + "0" * 5000 + "}", 1),
    ],
)
def test_a_file_that_is_no_rows_is_refused_by_line(tmp_path: Path, text: str, line: int) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(text)
    with pytest.raises(InputError) as refused:
        measured_rows.score(path)
    assert refused.value.problems[0].line == line


@pytest.mark.parametrize("left_out", STRICT)
def test_the_rules_hold_where_they_were_not_seen(left_out: str) -> None:
    """Each group judged only by rules that caught a failure outside of it."""
    recall, precision = STRICT[left_out]
    result = evidence_page.cross(evidence_page.SPLITS[left_out]).figures()
    assert (result["recall"] or 0) >= recall
    assert (result["precision"] or 0) >= precision


def test_models_known_by_name_only() -> None:
    result = evidence_page.tally(evidence_page.judged(profiles=False)).figures()
    assert (result["recall"] or 0) >= 0.90
    assert (result["precision"] or 0) >= 0.95


def test_no_rule_is_a_source_of_false_alarms() -> None:
    for item in evidence_page.judged():
        if not item.failed and item.fired:
            assert set(item.fired) <= {"fi-cutlass-moe-snapshot", "fi-cutlass-moe-illegal-instruction"}


def test_the_page_is_fresh() -> None:
    """Only the line with date and commit may differ."""
    page = (REPO / "docs" / "reference" / "evidence.md").read_text()
    wanted = evidence_page.text("")
    body = "\n".join(line for line in page.splitlines() if not line.startswith(evidence_page.STAMP))
    assert body.split() == wanted.split(), f"stale: {evidence_page.__doc__}"


def test_precedents_find_the_shipped_profile_itself() -> None:
    loaded = profile.load("nvidia--nemotron-3-ultra-550b-a55b-nvfp4")
    near = [run.as_dict() for run in comparable.find(resolve.resolve(loaded, inventory.load()), 3)]
    assert len(near) == 3
    assert near[0]["model"] == loaded.profile.model.id and near[0]["outcome"] == "ok"
    assert [item["distance"] for item in near] == sorted(item["distance"] for item in near)
    for item in near:
        assert item["source"].startswith("TESTLOG_")
        named = {difference["setting"] for difference in item["differences"]}
        assert bool(named) == (item["distance"] > 0) and named <= set(comparable.WEIGHTS)


def test_best_is_the_fastest_sane_run() -> None:
    best = comparable.best("qwen3.5-397b", 3)
    assert [row["n8"] for row in best] == sorted((row["n8"] for row in best), reverse=True)
    assert best[0]["n8"] == 125.4, "garbage at 156 tok/s must not win"


def test_best_of_an_unknown_model_is_refused() -> None:
    with pytest.raises(InputError, match="no measured row names a model like 'qwen9'"):
        comparable.best("qwen9")


def test_the_shipped_rows_name_their_source() -> None:
    readme = (measured_rows.SHIPPED.parent / "README.md").read_text()
    assert "dgxarley" in readme and len(measured_rows.shipped()) == 1080


def test_a_view_reads_no_outcome_key() -> None:
    source = inspect.getsource(measured_rows.view_of) + inspect.getsource(measured_rows._flags)
    assert not any(f'"{key}"' in source for key in OUTCOMES)


NVFP4 = {"quantization": "modelopt_fp4", "attention_backend": "flashinfer", "disable_cuda_graph": False}


@pytest.mark.parametrize(
    ("model", "settings", "rule"),
    [
        ("org/Step-3.5-Flash-NVFP4", {**NVFP4, "ep": 4, "moe_runner_backend": "triton"}, "nvfp4-ep-blockwise-moe"),
        ("Qwen/Qwen3-Coder-480B-A35B-Instruct-FP8", {"moe_runner_backend": "triton"}, "weights-exceed-memory"),
        ("org/Kimi-K2-Thinking-NVFP4", NVFP4, "weights-exceed-memory"),
        ("org/Large-675B-NVFP4", {**NVFP4, "mem_fraction_static": 0.8}, "mem-fraction-too-low"),
        (
            "RedHatAI/Step-3.5-Flash-NVFP4",
            {"moe_runner_backend": "flashinfer_cutlass"},
            "compressed-tensors-moe-runner",
        ),
        ("nvidia/Llama-4-Scout-17B-16E-Instruct-FP4", {**NVFP4, "mem_fraction_static": 0.8}, ""),
        ("org/Small-27B-NVFP4", {**NVFP4, "mem_fraction_static": 0.3}, ""),
        ("deepseek-ai/DeepSeek-V4-Pro", NVFP4, "weights-exceed-memory"),
        ("stepfun-ai/Step-3.5-Flash", {"tp": 1, "pp": 4, "attention_backend": "triton"}, "triton-attention-pipeline"),
    ],
)
def test_models_never_seen_are_judged_by_their_cause(model: str, settings: dict[str, Any], rule: str) -> None:
    row = {"model": model, "engine_version": "0.5.10", "nnodes": 4, "tp": 4, "ep": 1, **settings}
    row.setdefault("disable_piecewise_cuda_graph", True)
    _, fired = measured_rows.predict(measured_rows.view_of(row))
    assert (rule in fired) if rule else not fired


def test_numbers_and_switches_written_as_words_are_read_as_such() -> None:
    row = {"model": "org/Model-NVFP4", "engine_version": "0.5.10", "quantization": "modelopt_fp4"}
    plain = {"nnodes": 4, "tp": 4, "ep": 4, "mem_fraction_static": 0.85, "disable_cuda_graph": True}
    words = {name: str(value).lower() for name, value in plain.items()}
    assert measured_rows.view_of({**row, **words}) == measured_rows.view_of({**row, **plain})
