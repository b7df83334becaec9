"""The doctor at a site that serves several: each group's findings name it, the site's are said once."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace as NS
from typing import Any

import pytest

from sparkloom import case
from sparkloom.base.finding import Finding
from sparkloom.site import doctor
from sparkloom.site.checks.report import as_dict
from sparkloom.site.doctor import asking, events, groups, parts, roles
from sparkloom.site.groups import leftovers
from sparkloom.site.tasks import doctor as tasks
from tests import inventories
from tests.fleet_cluster import FleetCluster
from tests.plugins.loading import context

GLM, OSS = "nvidia--glm-5.3-flash-nvfp4", "openai--gpt-oss-120b"
LIST = f"serve:\n  - {{profile: {GLM}, name: glm, alias: glm-5.3}}\n  - {{profile: {OSS}, alias: oss}}\n"
NODES, STORES = ["spark1", "spark2"], "__model_serving_stores"


def judged(group: str, message: str = "not ready", where: str = "spark1") -> events.Event:
    rows = [as_dict(Finding(where, "rank 0", message, "ready", "its log"))]
    task = roles.own("model_serving", "serving", "Look at every rank")
    (event,) = events.of_task("cluster", task, {"failed": True, "rows": rows}, group)
    return event


def test_a_finding_names_its_group_and_a_site_with_one_profile_has_no_word_more() -> None:
    report = doctor.report([judged("glm")], NODES, ["glm", "oss"])
    assert "FAIL  spark1  serving: glm: rank 0: found not ready" in report.text()
    assert report.as_dict()["findings"][0]["group"] == "glm"
    alone = doctor.report([judged("")], NODES)
    assert "FAIL  spark1  serving: rank 0: found not ready" in alone.text()
    assert "group" not in alone.as_dict()["findings"][0]


def test_what_two_groups_say_in_the_same_words_is_said_once_with_both_names() -> None:
    same = [judged("glm"), judged("oss")]
    assert [one.group for one in doctor.report(same, NODES, ["glm", "oss", "chat"]).findings] == ["glm, oss"]
    assert [one.group for one in doctor.report(same, NODES, ["glm", "oss"]).findings] == [""], "all: it is the site's"
    apart = [judged("glm", "one"), judged("oss", "two")]
    assert [one.group for one in doctor.report(apart, NODES, ["glm", "oss"]).findings] == ["glm", "oss"]


@pytest.fixture
def plan(tmp_path: Path) -> Any:
    return case.fleet(inventories.serving(tmp_path, LIST))


def test_each_group_is_judged_where_it_stands(plan: Any) -> None:
    each = groups.planned(plan, "", "")
    assert [(one["name"], one["profile"], one["nodes"], one["served"]) for one in each] == [
        ("glm", GLM, ["spark1", "spark2"], "served"), (OSS, OSS, ["spark3"], f"{OSS}-served"),
    ]  # fmt: skip
    assert [one["name"] for one in groups.planned(plan, "oss", "")] == [OSS], "by what clients ask for, too"
    assert [one["name"] for one in groups.planned(plan, "", GLM)] == ["glm"]
    told = groups.variables(each[1])
    assert told["model_serving_profile"] == OSS
    assert told["__model_serving_group"] == {"profile": OSS, "nodes": ["spark3"]}


def test_a_list_that_does_not_pack_is_one_finding_with_what_would_help(tmp_path: Path) -> None:
    text = "serve:\n" + "".join(f"  - {{profile: {OSS}, name: g{n}, alias: g{n}}}\n" for n in range(5))
    told = groups.refused(case.fleet(inventories.serving(tmp_path, text)))
    (row,) = told["rows"]
    assert told["failed"] and row["check"] == "list" and row["expected"] == "room for all" and row["change"]


def test_pods_that_no_list_has_and_what_was_left_are_the_site_s_findings(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    inventory = inventories.serving(tmp_path, LIST)
    objects = [item for name in ("glm", OSS) for item in case.render_group(name, inventory, force=True).objects]
    kept: list[Any] = []

    def take(reached: Any, labels: Any, *, dry: bool) -> list[str]:
        assert dry
        kept.append(set(labels))
        return ["Service old"]

    monkeypatch.setattr(leftovers, "take", take)
    reached: Any = FleetCluster(objects)
    strange, left = groups.strangers(reached, ["glm"])
    assert (strange.where, strange.severity) == ("cluster", "error") and f"{OSS} on spark3" in strange.message
    assert "playbooks/serve.yml" in strange.fix and left.severity == "warning" and "Service old" in left.message
    assert kept == [{"glm", OSS}], "what runs keeps its objects"
    assert [one.rule for one in groups.strangers(reached, ["glm", OSS])] == ["left behind"]


def test_a_start_that_failed_is_told_of_its_group(tmp_path: Path) -> None:
    reached: Any = FleetCluster([])
    assert groups.failures(reached, {"served": "x-served", "profile": "x"}) == {}
    lost = '{"served": true, "profile": "x", "failed": {"profile": "x", "at": "today", "cause": "rank 0 crashed"}}'
    reached.kept["x-served"] = {"served.json": lost}
    (row,) = groups.failures(reached, {"served": "x-served", "profile": "x"})["rows"]
    assert "x did not start at today: rank 0 crashed" in row["found"] and row["severity"] == "info"


def test_what_a_machine_says_of_one_group_s_weights_is_known_to_that_group_alone() -> None:
    machines = {"spark1": {"other": 1, groups.KNOWN: {"glm": {STORES: {"answer": []}}}}}
    assert groups.registered(machines, "glm")["spark1"][STORES] == {"answer": []}
    assert STORES not in groups.registered(machines, "oss")["spark1"]
    assert groups.registered(machines, "oss")["spark1"]["other"] == 1


def test_the_site_is_walked_once_and_each_group_with_its_own_name(monkeypatch: pytest.MonkeyPatch) -> None:
    told = {"ansible_play_hosts_all": ["spark1"], "hostvars": {"spark1": {"said": {"said": [], "trouble": ""}}}}
    made, walked = tasks.Doctor(context(told), ["multus", "model_serving", "gateway"]), []

    def part(asked: Any, part: parts.Part, api: Any, group: str = "") -> bool:
        walked.append((part.role, part.file, group, asked.known.get("model_serving_profile", "")))
        return True

    monkeypatch.setattr(made, "_part", part)
    monkeypatch.setattr(made, "_k3s", lambda *_: None)
    monkeypatch.setattr(made, "_api", lambda *_, **__: object())
    monkeypatch.setattr(made, "_strangers", lambda *_: walked.append("strangers"))
    each = [{"name": name, "profile": name, "nodes": ["spark1"], "weights": {}} for name in ("glm", "oss")]
    known = {"__node_base_site": {"site": {}}, groups.KNOWN: each}
    made.context.action._loader = NS(load_from_file=lambda *_, **__: [])
    made.judge({"seen": [], "known": known, "away": False}, "said")
    site = [one for one in walked if one[2:] == ("", "")]
    assert [one[:2] for one in site] == [("multus", "main"), ("gateway", "main")]
    for name in ("glm", "oss"):
        mine = [one[1] for one in walked if one[2:] == (name, name)]
        assert mine == ["weights", "look"]
    assert walked.count("strangers") == 1


def test_one_group_s_answers_are_not_another_s() -> None:
    """What `render` registered of the first group would be the plan of the second."""
    asked = asking.Asking(context(), {"shared": 1})
    first, second = asked.with_variables({"x": 1}), asked.with_variables({"x": 2})
    first.known["__model_serving_plan"] = {"objects": []}
    assert "__model_serving_plan" not in second.known and second.known == {"shared": 1, "x": 2}
