"""Every alert by promtool: it fires when it should, stays away when it only looks like it, and is over again."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from sparkloom import case
from sparkloom.launch import engines
from sparkloom.onnode.host_metrics import main as host_metrics
from sparkloom.onnode.rank import exposition
from sparkloom.onnode.waker import metrics as waker
from sparkloom.render.metrics import alerts, series
from tests.places import REPO
from tests.prometheus import program
from tests.render.metrics.alert_cases import AFTER, BAD, CASES, NEAR, STEP, WELL, Case, Near, Series

ALL = alerts.of(case.cluster(None))
PATIENCE = {alert["alert"]: alert["for"] for alert in ALL}
FUNCTIONS = {"sum", "max", "min", "avg", "count", "rate", "increase", "deriv", "min_over_time", "max_over_time", "time"}
SCRAPED = ("up",)  # of Prometheus itself, for each target
WORDS = {"by", "on", "unless", "or", "and", "group", "rank", "node", "instance", "model", "person", "phase", "status"}


def judged(folder: Path, tests: list[dict]) -> str:
    """What promtool says; empty when all is as expected. Each alert alone: the others' rules would cost the most."""
    words = []
    for name in sorted({test["name"] for test in tests}):
        rules, file = f"{name}.rules.yml", f"{name}.tests.yml"
        (folder / rules).write_text(alerts.text([alert for alert in ALL if alert["alert"] == name]))
        mine = [test for test in tests if test["name"] == name]
        told = {"rule_files": [rules], "evaluation_interval": f"{STEP}s", "tests": mine}
        (folder / file).write_text(json.dumps(told))  # JSON is YAML too
        words.append(file)
    done = subprocess.run([program("promtool"), "test", "rules", *words], cwd=folder, capture_output=True, text=True)
    return "" if done.returncode == 0 else done.stdout + done.stderr


def at(alert: str, steps: float, firing: bool) -> dict:
    """Whether it fires then, for how many ever."""
    asked = f'(count(ALERTS{{alertname="{alert}",alertstate="firing"}}) > bool 0) or vector(0)'
    return {"expr": asked, "eval_time": f"{steps * STEP:.0f}s", "exp_samples": [{"labels": "{}", "value": int(firing)}]}


def timed(name: str, given: tuple[Series, ...], asked: list[dict]) -> dict:
    listed = [{"series": one, "values": values} for one, values in given]
    return {"name": name, "interval": f"{STEP}s", "input_series": listed, "promql_expr_test": asked}


def fires(one: Case) -> dict:
    longer = 3 * BAD if one.alert == "SparkloomCertificateEnds" else BAD
    asked = [
        at(one.alert, WELL - 2, False),
        at(one.alert, WELL + one.within * 60 / STEP, True),
        at(one.alert, WELL + longer + min(AFTER - 4, one.resolved * 60 / STEP) + 2, False),
    ]
    if PATIENCE[one.alert] not in ("0m", "30s"):
        asked.append(at(one.alert, WELL + 2, False))
    return timed(one.alert, one.series, asked)


def quiet(one: Near) -> dict:
    return timed(one.alert, one.series, [at(one.alert, step, False) for step in range(4, WELL + BAD + AFTER, 8)])


def test_every_alert_has_its_case() -> None:
    assert {one.alert for one in CASES} == {alert["alert"] for alert in ALL}


def test_every_alert_fires_and_is_over(tmp_path: Path) -> None:
    assert judged(tmp_path, [fires(one) for one in CASES]) == ""


def test_no_alert_fires_for_what_only_looks_like_it(tmp_path: Path) -> None:
    assert judged(tmp_path, [quiet(one) for one in NEAR]) == ""


def test_the_judge_would_see_an_alert_that_never_fires(tmp_path: Path) -> None:
    """The tests above would be empty if promtool passed everything."""
    never = timed("SparkloomEngineDown", CASES[0].series, [at("SparkloomEngineDown", WELL - 2, True)])
    assert "SparkloomEngineDown" in judged(tmp_path, [never])


def names_in(expr: str) -> set[str]:
    """Series that a query asks for; those of engines stand in a pattern."""
    found = {name for pattern in re.findall(r'__name__=~"([^"]+)"', expr) for name in pattern.split("|")}
    bare = re.sub(r'"(?:[^"\\]|\\.)*"', "", expr)
    bare = re.sub(r"\[[^\]]*\]", "", bare)
    bare = re.sub(r"\{[^}]*\}", "", bare)
    words = set(re.findall(r"(?<![\w:])[a-z_:][a-zA-Z0-9_:]*", bare))
    return found | {word for word in words if word not in FUNCTIONS | WORDS and not word.isdigit()}


def given() -> set[str]:
    """Every series that there is, by whoever gives it."""
    told = (name for engine in engines.measured() for name in (*engine["gauges"], *engine["moves"]))
    node = (name for names in series.NODE.values() for name in names)
    ours = (*exposition.NAMES, *host_metrics.NAMES, *waker.NAMES, *series.READ["people"])
    return {*ours, *SCRAPED, *node, *told}


@pytest.mark.parametrize("alert", ALL, ids=lambda alert: alert["alert"])
def test_it_asks_for_series_that_somebody_gives(alert: alerts.Rule) -> None:
    asked = names_in(re.sub(r"(?:by|on) \([^)]*\)", "", alert["expr"]))
    assert asked and asked <= given() | {"bool"}, asked - given()


@pytest.mark.parametrize("alert", ALL, ids=lambda alert: alert["alert"])
def test_it_says_cause_and_fix_in_one_line_and_names_a_page(alert: alerts.Rule) -> None:
    assert (
        "\n" not in alert["annotations"]["summary"]
        and alert["annotations"]["summary"].endswith(".")
        and "{{ $labels." in alert["annotations"]["summary"]
    )
    assert re.search(r"[:;,] ", alert["annotations"]["summary"]), "a cause, then what to do"
    page, _, anchor = alert["annotations"]["runbook"].partition("#")
    headings = [line.lstrip("# ").lower() for line in (REPO / page).read_text().splitlines() if line.startswith("#")]
    assert anchor in headings


def test_a_site_without_rails_is_told_of_no_link() -> None:
    alone = case.cluster(None)
    alone = alone.model_copy(update={"fabric": alone.fabric.model_copy(update={"rails": []})})
    assert "SparkloomLinkDown" not in {alert["alert"] for alert in alerts.of(alone)}
