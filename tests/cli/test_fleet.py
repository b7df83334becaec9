"""`sparkloom fleet plan`: what people see on one screen, what scripts get, and what each exit status means."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests import inventories
from tests.cli.window import piped, seen
from tests.inventories import GLM, OSS, QWEN, THREE

FULL = f"""\
serve:
  - {{profile: {GLM}, name: glm}}
  - {{profile: {GLM}, name: other, alias: other}}
  - {OSS}
"""


def test_one_screen_shows_who_is_where(tmp_path: Path) -> None:
    site = inventories.serving(tmp_path, THREE)
    for columns in (80, 120):
        shown = seen(columns, "fleet", "plan", "-i", str(site))
        assert shown.code == 0
        assert len(shown.lines) <= 24 and len(shown.widest) <= columns, shown.text
        assert "3 groups on 4 Sparks" in shown.text and "fits" in shown.lines[0]
        spark = next(line for line in shown.lines if "spark4" in line)
        assert "C0" in spark and "CC" in spark and ".." in spark and "gg" in spark


TURNS = f"""\
serve:
  - {{profile: {OSS}, idle_minutes: 15, turns: big}}
  - {{profile: {QWEN}, name: chat, idle_minutes: 5, turns: big}}
  - {{profile: {GLM}, name: glm}}
"""


def test_who_takes_turns_is_shown_in_one_place(tmp_path: Path) -> None:
    site = inventories.serving(tmp_path, TURNS)
    shown = seen(120, "fleet", "plan", "-i", str(site))
    spark = next(line for line in shown.lines if "spark3" in line)
    assert "A0/B0" in spark and "AA" in spark and "BB" not in spark, "the one that takes most"
    text = " ".join(shown.text.split())
    assert f"A {OSS} on spark3" in text
    assert "on demand, stops after 15 min without a request, in turn with chat; new" in text
    plan = json.loads(piped("fleet", "plan", "-i", str(site), "--json").text)
    oss, chat, glm = plan["groups"]
    assert oss["nodes"] == chat["nodes"] and (oss["turns"], oss["idle_minutes"], glm["turns"]) == ("big", 15, None)
    assert oss["secrets"] != chat["secrets"] and plan["nodes"][2]["gpu"] == "one group's"
    assert sum(bool(node["groups"]) for node in plan["nodes"]) == 3


def test_a_turn_of_one_is_a_remark_and_one_of_two_sizes_a_mistake(tmp_path: Path) -> None:
    alone = inventories.serving(tmp_path, f"serve:\n  - {{profile: {OSS}, idle_minutes: 15, turns: big}}\n")
    done = piped("lint", "-i", str(alone), "--json")
    (finding,) = [one for one in json.loads(done.text) if one["rule"] == "fleet-turn-of-one"]
    assert finding["severity"] == "info" and done.code == 0
    unlike = inventories.serving(tmp_path, TURNS.replace("glm}", "glm, idle_minutes: 5, turns: big}"), name="unlike")
    done = piped("lint", "-i", str(unlike))
    assert done.code == 2 and f"glm takes 2 Sparks, and {OSS} of turn big 1 Spark" in " ".join(done.errors.split())


@pytest.mark.parametrize(("said", "rules"), [("gateway_enabled: false\n", ["fleet-nobody-wakes"]), ("", [])])
def test_where_nothing_would_wake_a_group_a_warning_says_so(said: str, rules: list[str], tmp_path: Path) -> None:
    site = inventories.serving(tmp_path, f"serve:\n  - {{profile: {OSS}, idle_minutes: 15}}\n")
    (site / "group_vars" / "all" / "gateway.yml").write_text(f"---\n{said}gateway_port: 443\n")
    plan = json.loads(piped("fleet", "plan", "-i", str(site), "--json").text)
    assert [one["rule"] for one in plan["findings"] if one["rule"].startswith("fleet")] == rules
    assert [one["severity"] for one in plan["findings"] if one["rule"].startswith("fleet")] == ["warning"] * len(rules)


def test_a_refusal_names_taking_turns(tmp_path: Path) -> None:
    more = f"  - {OSS}\n  - {QWEN}\n  - {{profile: {QWEN}, name: b, alias: b}}\n"
    full = f"serve:\n  - {{profile: {GLM}, name: glm}}\n{more}"
    plan = json.loads(piped("fleet", "plan", "-i", str(inventories.serving(tmp_path, full)), "--json").text)
    assert f"one of them awake at a time: turns: {OSS} and idle_minutes: for {OSS}, {QWEN}" in plan["advice"]


def test_a_refusal_shows_what_would_fit_on_one_screen(tmp_path: Path) -> None:
    shown = seen(80, "fleet", "plan", "-i", str(inventories.serving(tmp_path, FULL)))
    assert shown.code == 1 and len(shown.lines) <= 24 and len(shown.widest) <= 80
    text = " ".join(shown.text.split())
    assert "3 groups ask for 5 of their own; there are 4 Sparks" in text
    assert "one profile less: without glm or other or openai--gpt-oss-120b" in text


def test_json_has_everything_of_each_group(tmp_path: Path) -> None:
    done = piped("fleet", "plan", "-i", str(inventories.serving(tmp_path, THREE)), "--json")
    plan = json.loads(done.text)
    assert done.code == 0 and plan["fits"] is True and plan["verdict"] == "fits"
    glm, oss, chat = plan["groups"]
    assert glm["nodes"] == ["spark1", "spark2"] and glm["vf"] == 0 and glm["first_port"] == 20000
    assert glm["addresses"]["spark2"] == {"a": "192.168.100.12/24", "b": "192.168.101.12/24"}
    assert glm["secrets"] == {"engine_key": "engine-own-key", "group": "glm-group"}
    assert oss["secrets"] == {"engine_key": f"{OSS}-engine-key", "group": None}
    assert chat["fraction"] == 0.42 and chat["told"]["max_total_tokens"] > 0
    assert [node["gpu"] for node in plan["nodes"]] == ["one group's", "one group's", "one group's", "1 share it"]


def test_a_refusal_in_json_is_a_finding_with_its_place(tmp_path: Path) -> None:
    site = inventories.serving(tmp_path, FULL)
    done = piped("fleet", "plan", "-i", str(site), "--json")
    plan = json.loads(done.text)
    assert done.code == 1 and plan["fits"] is False and plan["groups"] == [] and plan["advice"]
    assert [one["name"] for one in plan["unplaced"]] == ["glm", "other", OSS]
    finding = next(finding for finding in plan["findings"] if finding["rule"] == "fleet-does-not-fit")
    assert finding["where"].startswith(f"{site}/group_vars/all/cluster.yml:") and finding["fix"]


def test_an_earlier_plan_is_what_runs_and_stays(tmp_path: Path) -> None:
    before = inventories.serving(tmp_path, f"serve:\n  - {OSS}\n  - {{profile: {QWEN}, name: chat}}\n", name="before")
    record = tmp_path / "now.json"
    record.write_text(piped("fleet", "plan", "-i", str(before), "--json").text)
    after = inventories.serving(
        tmp_path, f"serve:\n  - {{profile: {GLM}, name: glm}}\n  - {{profile: {QWEN}, name: chat}}\n", name="after"
    )
    plan = json.loads(piped("fleet", "plan", "-i", str(after), "--record", str(record), "--json").text)
    glm, chat = plan["groups"]
    assert chat["nodes"] == ["spark2"] and chat["state"] == "stays" and plan["gone"] == [OSS]
    assert glm["nodes"] == ["spark1", "spark3"] and glm["state"] == "new"
    shown = seen(80, "fleet", "plan", "-i", str(after), "--record", str(record)).text
    assert f"{OSS} is in the list no more" in " ".join(shown.split())


def test_one_profile_needs_no_list() -> None:
    plan = json.loads(piped("fleet", "plan", "--json").text)
    (group,) = plan["groups"]
    assert group["nodes"] == ["spark1", "spark2", "spark3", "spark4"]
    assert group["secrets"]["engine_key"] == "engine-own-key"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("serve:\n  - {profile: nobody--nothing}\n", "no such profile"),
        (f"serve:\n  - {{profile: {QWEN}, fraction: 3}}\n", "share of a Spark's memory"),
        (f"serve:\n  - {{profile: {QWEN}, nodes: 5}}\n", "cannot be split over 5 Sparks"),
        (f"serve:\n  - {{profile: {QWEN}, name: a}}\n  - {{profile: {QWEN}, name: b}}\n", "both answer to"),
    ],
)
def test_a_list_that_cannot_be_read_is_said_with_its_place(text: str, words: str, tmp_path: Path) -> None:
    site = inventories.serving(tmp_path, text)
    for command in (("fleet", "plan"), ("lint",)):
        done = piped(*command, "-i", str(site))
        assert done.code == 2 and words in done.errors
        assert f"{site}/group_vars/all/cluster.yml:" in done.errors


def test_lint_judges_the_list(tmp_path: Path) -> None:
    done = piped("lint", "-i", str(inventories.serving(tmp_path, FULL)), "--json")
    assert done.code == 1
    found = [finding for finding in json.loads(done.text) if finding["profile"] == "serve"]
    assert [finding["rule"] for finding in found] == ["fleet-does-not-fit"]
    assert piped("lint", "-i", str(inventories.serving(tmp_path, THREE, name="good"))).code == 0


def test_a_group_is_rendered_by_its_name(tmp_path: Path) -> None:
    site = inventories.serving(tmp_path, THREE)
    done = piped("render", "--group", "chat", "-i", str(site), "-o", str(tmp_path / "out"))
    assert done.code == 0 and "name: chat-rank0" in (tmp_path / "out" / "chat.yaml").read_text()
    assert piped("render", "--group", "nobody", "-i", str(site)).code == 2
    assert piped("render", "-i", str(site)).code == 2
    assert piped("render", QWEN, "--group", "chat", "-i", str(site)).code == 2
