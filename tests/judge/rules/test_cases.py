"""Every rule: its own two cases, its declarations, its log pattern. One test file for all, so that no rule has none."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
import yaml

from scripts.docs import rules_page
from sparkloom.base.finding import ORDER
from sparkloom.judge import rules
from sparkloom.judge.rules.base import LaunchView, Scope, case, within
from sparkloom.judge.rules.rule import Rule
from tests.places import REPO

SAMPLES: dict[str, str] = yaml.safe_load((REPO / "tests" / "data" / "rule_logs.yml").read_text())
EVERY = rules.every()
by_id = pytest.mark.parametrize("rule", EVERY, ids=lambda rule: rule.id)


@by_id
def test_the_failing_case_fires_and_the_passing_one_does_not(rule: Rule) -> None:
    hits = list(rule.judge(rule.failing))
    assert hits, "the failing case must fire"
    assert all(hit.message and hit.flag for hit in hits), "a hit says what was found and where to look"
    assert not list(rule.judge(rule.passing)), "the passing case must not fire"


@by_id
def test_a_rule_says_where_it_holds_why_and_what_to_do(rule: Rule) -> None:
    assert rule.severity in ORDER
    assert len(rule.why) > 30 and len(rule.fix) > 3
    assert rule.evidence and all(source.what for source in rule.evidence)
    assert _file(rule).read_text().startswith("# "), "the file begins with the trap in one sentence"


@by_id
def test_another_engine_is_never_meant(rule: Rule) -> None:
    if rule.scope.engine != "*":
        other = "vllm" if rule.scope.engine == "sglang" else "sglang"
        assert not list(rule.judge(_replaced(rule.failing, engine=other)))


@by_id
def test_no_rule_names_a_measured_row(rule: Rule) -> None:
    text = _file(rule).read_text()
    assert "TESTLOG" not in text and "#firstrun" not in text


@pytest.mark.parametrize("rule", [rule for rule in EVERY if rule.log_pattern], ids=lambda rule: rule.id)
def test_log_patterns_match_what_engines_say(rule: Rule) -> None:
    assert rule.log_pattern and re.search(rule.log_pattern, SAMPLES[rule.id])


@by_id
def test_a_function_bears_its_rules_name(rule: Rule) -> None:
    assert rule.computed is None or rule.computed.__name__ == rule.id.replace("-", "_")


def test_every_sample_belongs_to_a_rule() -> None:
    assert set(SAMPLES) == {rule.id for rule in EVERY if rule.log_pattern}


def test_an_unknown_release_is_within_no_range() -> None:
    assert within("0.5.10rc0", ">=0.5.10rc0,<0.5.12") and within("0.5.9", "<0.5.10rc0")
    assert not within("0.5.10rc0", "<0.5.10"), "a candidate is no older release: name it in the range"
    assert within("0.5.12.post1", ">=0.5.12,<0.5.13")
    assert not within("", "<99")


def test_a_scope_compares_counts() -> None:
    assert Scope(engine="sglang", ep=">1", tp="==4").covers(case(tp=4, ep=4))
    assert not Scope(engine="sglang", ep=">1").covers(case(ep=1))
    assert not Scope(engine="sglang", pp="==1").covers(case(pp=4))


def test_a_fix_that_the_image_carries_lifts_the_trap() -> None:
    rule = next(rule for rule in EVERY if rule.id == "nvfp4-ep-blockwise-moe")
    assert not list(rule.judge(_replaced(rule.failing, carries=frozenset({"patch:nvfp4-ep"}))))


def test_the_rule_table_is_fresh() -> None:
    assert (REPO / "docs" / "reference" / "rules.md").read_text() == rules_page.text(), f"stale: {rules_page.__doc__}"


def test_all_rules_judge_a_launch_quickly() -> None:
    """Loose bound against accidents (a rule that reads files); the figure itself is the benchmark's."""
    view = next(rule for rule in EVERY if rule.id == "mem-fraction-too-low").failing
    rules.fired(view)
    started = time.perf_counter()
    for _ in range(20):
        rules.fired(view)
    assert (time.perf_counter() - started) / 20 < 0.02


def _file(rule: Rule) -> Path:
    return Path(rules.__file__).parent / f"{rule.id}.yml"


def _replaced(view: LaunchView, **changes: object) -> LaunchView:
    from dataclasses import replace

    return replace(view, **changes)  # type: ignore[arg-type]
