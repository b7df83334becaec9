"""What people read fits their window, at 80 columns and at 40, and what others' programs read stays whole."""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from pathlib import Path

import pytest

from sparkloom import case
from sparkloom.cli import memory_bar
from sparkloom.inputs import profile as profiles
from tests.cli.window import piped, seen
from tests.places import REPO

ULTRA = "nvidia--nemotron-3-ultra-550b-a55b-nvfp4"
FIX = "launch with --set to repeat the measured run"


@pytest.mark.parametrize("columns", [40, 80])
@pytest.mark.parametrize(
    "words",
    [
        ("profiles",),
        ("lint",),
        ("plan", ULTRA),
        ("plan", ULTRA, "--explain"),
        ("plan", ULTRA, "--set", "launch.mem_fraction_static=0.85"),
        ("evidence", "find", ULTRA),
        ("evidence", "best", "GLM-4.7"),
        ("--help",),
        ("plan", "-h"),
    ],
    ids=lambda words: " ".join(words).replace(ULTRA, "ULTRA"),
)
def test_no_line_is_wider_than_the_window(columns: int, words: tuple[str, ...]) -> None:
    shown = seen(columns, *words)
    assert len(shown.widest) <= columns, shown.widest


def test_at_80_columns_a_model_is_one_line_with_the_whole_name_of_its_fastest_launch() -> None:
    listing = json.loads(piped("profiles", "--json").text)
    lines = seen(80, "profiles").lines
    assert lines[0].split() == ["profile", "Sparks", "tok/s", "age", "more"]
    rows = {line.split()[0]: line.split()[1:] for line in lines[1 : lines.index("")]}
    models = {item["name"]: item["model"] for item in listing}
    assert sorted(models[name] for name in rows) == sorted({item["model"] for item in listing})
    assert rows["openai--gpt-oss-120b--2node"][:2] == ["2", "69.0"] and rows["openai--gpt-oss-120b--2node"][-1] == "1"
    measured = [float(row[1]) for row in rows.values() if "-" not in row[1]]
    assert measured == sorted(measured, reverse=True)


def test_what_a_small_site_has_no_sparks_for_is_told_apart(tmp_path: Path) -> None:
    """It was refused whole: the first profile for four Sparks ended it."""
    site = tmp_path / "two"
    shutil.copytree(REPO / "inventories/gb10", site)
    hosts = site / "hosts.yml"
    kept = [line for line in hosts.read_text().splitlines() if not line.strip().startswith(("spark3:", "spark4:"))]
    hosts.write_text("\n".join(kept))
    ranked = json.loads(piped("profiles", "--fits", "--json", "-i", str(site)).text)
    assert {item["nodes"] for item in ranked} == {1, 2}
    shown = seen(80, "profiles", "-i", str(site))
    fits, left = shown.text.split("Not on the 2 Sparks of")
    assert "openai--gpt-oss-120b--2node" in fits and "nvidia--glm-4.7-nvfp4" not in fits
    assert "nvidia--glm-4.7-nvfp4" in left and len(shown.widest) <= 80


def test_at_40_columns_no_cell_is_cut_into_strips() -> None:
    """A table that is squeezed gives columns of two or three letters, which nobody can read."""
    for words in (("profiles",), ("evidence", "find", ULTRA)):
        lines = seen(40, *words).lines
        assert not [line for line in lines if len(re.findall(r" {2,}", line.strip())) > 2]


def test_a_fix_is_said_once_for_all_findings_that_share_it() -> None:
    count = Counter(finding["fix"] for finding in json.loads(piped("lint", "--json").text))
    assert max(count.values()) > 1
    for text in (piped("lint").text, " ".join(seen(80, "lint").text.split())):
        assert text.count(FIX) == 1


def test_in_a_pipe_a_finding_stays_one_line_and_a_table_row_too() -> None:
    findings = json.loads(piped("lint", "--json").text)
    lines = piped("lint").lines
    for finding in findings:
        assert [line for line in lines if line.startswith(finding["where"]) and f"[{finding['rule']}]" in line]
    assert piped("profiles").lines[0].split() == [
        "profile",
        "engine",
        "nodes",
        "tp",
        "ep",
        "status",
        "n1",
        "n4",
        "n8",
    ]


def test_the_bar_of_memory_sums_to_what_a_spark_has() -> None:
    text = seen(80, "plan", ULTRA).text
    part = re.compile(r"^ +~?(\d+\.\d) (\S) (.+)$", re.M)
    figures = {what.strip(): float(gib) for gib, _, what in part.findall(text)}
    assert figures.pop("what a Spark has") == 121.6
    assert round(sum(figures.values()), 1) == 121.6 and len(figures) == 6
    assert figures["weights"] == 83.7 and any(name.startswith("KV cache") for name in figures)
    bar = next(line for line in text.splitlines() if line.count("█") > 10)
    assert len(bar) == 72 and 48 <= bar.count("█") <= 52


def test_the_plan_has_three_rows_of_speed_and_says_what_limits() -> None:
    lines = seen(80, "plan", ULTRA).lines
    for row in ("memory bound", "predicted", "measured"):
        assert [line for line in lines if line.startswith(row) and len(re.findall(r"\d+\.\d", line)) == 3]
    limits = lines[lines.index("what limits") :]
    assert any("16, by the state slots (48, 3 per request)" in line for line in limits)
    assert any("3, by the KV cache" in line for line in limits)


def test_a_plan_that_is_uncertain_says_what_limits_a_start_that_succeeds() -> None:
    lines = seen(80, "plan", f"{ULTRA}--vllm").lines
    limits = "\n".join(lines[lines.index("what limits") :])
    assert "where it does:" in limits and "requests at once: 2, by the engine's settings" in limits
    assert "longest request: 262,144 tokens" in limits


def test_every_shipped_plan_sums_and_what_is_missing_is_negative() -> None:
    for name in profiles.names():
        memory = case.plan(name)["memory"]
        drawn = memory_bar.parts(memory)
        assert sum(part.gib for part in drawn) == pytest.approx(memory["usable_gib"]), name
        tenths = memory_bar.shares([part.gib for part in drawn], round(memory["usable_gib"] * 10))
        assert sum(tenths) == round(memory["usable_gib"] * 10)
    short = memory_bar.parts({"usable_gib": 121.6, "free_before_load_gib": 100.7, "weights_gib_per_rank": 130.0})
    assert short[-1].what == "missing" and round(short[-1].gib, 1) == -29.3
    assert sum(memory_bar.shares([part.gib for part in short], 1216)) == 1216


@pytest.mark.parametrize(("values", "total"), [([0.001, 99.0], 40), ([1, 1, 1], 40), ([5.0, -1.0], 40), ([0.0], 0)])
def test_shares_are_whole_and_lose_nothing_that_is_there(values: list[float], total: int) -> None:
    given = memory_bar.shares(values, total)
    assert sum(given) == total and all(share for share, value in zip(given, values, strict=True) if value > 0)


def test_a_terminal_without_unicode_gets_letters() -> None:
    shown = seen(80, "plan", ULTRA, encoding="ascii")
    assert "WWWW" in shown.text and "\\u" not in shown.text
