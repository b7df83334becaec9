"""What a dry run said becomes findings: who, what, what to do; and a node that said nothing is not called healthy."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace as NS
from typing import Any

import pytest

from sparkloom import case
from sparkloom.base.finding import Finding
from sparkloom.onnode.now.groups import WORDS, Observed, state
from sparkloom.render.manifests import names
from sparkloom.site import doctor
from sparkloom.site.checks import kubernetes, report, serving
from sparkloom.site.checks.report import as_dict
from sparkloom.site.doctor import drift, events, look, roles, verdict
from sparkloom.site.groups import records
from sparkloom.site.groups.group import RenderedGroup
from tests.fleet_cluster import FleetCluster, installed

NODES = ["spark1", "spark2"]
FILE = {"before": "vm.swappiness = 60\n", "after": "vm.swappiness = 1\n", "before_header": "/etc/sysctl.d/90.conf"}


def event(
    outcome: str = "changed", role: str = "node_base", host: str = "spark1", area: str = "main", **result: Any
) -> events.Event:
    return events.Event(host=host, role=role, area=area, task="Keep it", outcome=outcome, result=result)


def one(*seen: events.Event) -> Finding:
    (finding,) = doctor.report(seen, NODES).findings
    return finding


def test_nothing_said_is_as_planned() -> None:
    report = doctor.report([], NODES)
    assert report.good and report.findings == [] and set(report.cells()["spark2"].values()) == {"ok"}


def test_a_file_that_would_be_written_is_a_finding_with_both_lines_and_the_playbook_that_mends_it() -> None:
    finding = one(event(diff=[FILE]))
    assert (finding.where, finding.area, finding.rule) == ("spark1", "hosts", "/etc/sysctl.d/90.conf")
    assert finding.message == "'vm.swappiness = 60'" and finding.expected == "'vm.swappiness = 1'"
    assert "playbooks/nodes.yml" in finding.fix and "--tags nodes" in finding.fix


@pytest.mark.parametrize(
    ("result", "what", "found"),
    [
        ({"diff": [{**FILE, "before": ""}]}, "/etc/sysctl.d/90.conf", "not there"),
        ({"diff": [{**FILE, "before": FILE["after"]}]}, "/etc/sysctl.d/90.conf", "another owner or other permissions"),
        (
            {"diff": [{**FILE, "before": FILE["after"], "before_mode": "0644", "after_mode": "0600"}]},
            "/etc/sysctl.d/90.conf",
            "permissions 0644",
        ),
        ({"links": ["enp1s0f0v1"]}, "enp1s0f0v1", "other MTU or address"),
        ({"drift": [{"what": "vm.swappiness", "found": "60", "expected": "1"}]}, "vm.swappiness", "60"),
        ({"stdout_lines": ["changed: enp1s0f0v1: MAC 02"]}, "virtual functions", "enp1s0f0v1: MAC 02"),
        ({"done": ["enable --now x.service"]}, "unit x.service", "waits for 'enable --now'"),
        ({}, "Keep it", "would change"),
    ],
)
def test_every_kind_of_change_is_named(result: dict[str, Any], what: str, found: str) -> None:
    finding = one(event(area="functions", **result))
    assert (finding.rule, finding.message) == (what, found)


def test_an_object_that_would_be_applied_is_the_clusters() -> None:
    gone = {"kind": "NetworkAttachmentDefinition", "name": "rail-a-vf0", "diff": {}}
    other = {"kind": "DaemonSet", "name": "m", "diff": {"before": {"spec": {"x": 1}}, "after": {"spec": {"x": 2}}}}
    report = doctor.report([event(role="multus", differing=[gone, other])], NODES)
    assert [(f.where, f.area, f.message) for f in report.findings] == [
        ("cluster", "cluster", "not there"), ("cluster", "cluster", "1"),
    ]  # fmt: skip
    assert report.findings[1].rule == "DaemonSet m spec.x"


def test_long_values_are_shown_where_they_differ() -> None:
    """On the old code both were cut to the same 77 characters."""
    plan = '{"program": "x", "profile": "' + "p" * 120 + '", "port": 30000, "image": "i", "tail": "' + "t" * 90 + '"}'
    found, expected = drift.apart(plan, plan.replace("30000", "30001"))
    assert found != expected and "30000" in found and "30001" in expected and len(found) <= 80
    assert drift.apart("a" * 90, "b") == ("a" * 74 + "...", "b")
    assert drift.apart("a  b", "a b") == ("a b, other white space", "a b")
    packed = "QUJD" * 50
    found, expected = drift.apart(packed, packed + "QQ==")
    assert found.startswith("200 characters, sha256 ") and found[-12:] != expected[-12:]


def test_a_secret_is_named_and_never_shown() -> None:
    """On the old code: `Make the API key, once: found would change; expected no change`."""
    drift = report.secret("router", there=True, differs=True, expected="the router's files")
    finding = one(event(role="gateway", host="cluster", changed=True, drift=drift))
    assert (finding.rule, finding.message) == ("Secret router", "another content")
    assert finding.expected == "the router's files"
    gone = report.secret("gateway-tls", there=False, differs=True, expected="the endpoint's")
    assert gone[0]["found"] == "not there" and report.secret("x", there=True, differs=False, expected="") == []


def test_a_part_that_was_never_applied_is_one_finding() -> None:
    gone = [{"kind": "Service", "name": f"s{n}", "diff": {}} for n in range(5)]
    finding = one(event(role="multus", differing=gone))
    assert finding.rule.startswith("5 objects (Service s0, Service s1") and finding.message == "not there"


def test_what_is_heard_of_a_task_holds_no_whole_answer_and_nothing_where_nothing_is_amiss() -> None:
    applied = roles.own("multus", "main", "Apply")
    mixed = {"changed": True, "result": {"spec": "large"}, "differing": [{"kind": "Pod", "name": "p", "diff": {}}]}
    (kept,) = events.of_task("cluster", applied, mixed)
    assert (kept["role"], kept["area"], kept["task"], kept["outcome"]) == ("multus", "main", "Apply", "changed")
    assert [one["name"] for one in kept["result"]["differing"]] == ["p"] and "large" not in str(kept)
    assert events.of_task("spark1", applied, {"changed": False}) == []
    assert [events.of_task("spark1", applied, answer)[0]["outcome"] for answer in (
        {"unreachable": True, "changed": True}, {"failed": True, "changed": True}, {"rows": [1]}, {"words": "x"},
    )] == ["unreachable", "failed", "judged", "judged"]  # fmt: skip


def test_rows_keep_their_node_and_their_own_advice_and_warnings_do_not_fail() -> None:
    rows = [as_dict(Finding("spark2", "clock", "off", "NTP", "set it", "warning"))]
    report = doctor.report([event("judged", role="preflight", rows=rows)], NODES)
    assert report.good and report.cells()["spark2"]["hosts"] == "warning"
    rows = [as_dict(Finding("spark2", "disk", "1 GiB", "40 GiB", "make room"))]
    report = doctor.report([event("failed", role="preflight", rows=rows)], NODES)
    assert not report.good and report.cells() == {
        "spark1": dict.fromkeys(verdict.AREAS, "ok"),
        "spark2": {**dict.fromkeys(verdict.AREAS, "ok"), "hosts": "1"},
    }


def test_an_unreachable_node_is_one_finding_and_never_ok() -> None:
    seen = [event("unreachable", host="spark2", msg="no route", unreachable=True)] * 2
    report = doctor.report(seen, NODES)
    assert len(report.findings) == 1
    assert report.cells()["spark2"] == {**dict.fromkeys(verdict.AREAS, "?"), "hosts": "1"}
    assert "FAIL  spark2  hosts: connection: found no route" in report.text()


def test_of_a_node_that_cannot_be_read_nothing_else_is_told() -> None:
    """What others say of it (a rail without an answer, say) only follows from that."""
    rows = [as_dict(Finding("spark2", "rail a", "no answer", "an answer", "the cable"))]
    lost = event("unreachable", host="spark2", msg="no route", unreachable=True)
    report = doctor.report([lost, event("failed", "roce_fabric", "cluster", rows=rows)], NODES)
    assert [(finding.where, finding.rule) for finding in report.findings] == [("spark2", "connection")]


def test_a_task_that_failed_twice_for_one_reason_is_one_finding_and_its_areas_are_not_called_well() -> None:
    report = doctor.report([event("failed", msg="no answer"), event("failed", "roce_fabric", msg="no answer")], NODES)
    assert [finding.message for finding in report.findings] == ["no answer"]
    assert report.cells()["spark1"]["fabric"] == "?"


def test_the_same_trouble_seen_twice_is_said_once() -> None:
    assert len(doctor.report([event(diff=[FILE]), event(diff=[FILE])], NODES).findings) == 1


def test_a_long_file_shows_its_first_difference() -> None:
    found, expected = drift._lines("a\nb\nc\n", "a\nX\nY\n")
    assert found.startswith("'b'") and "more lines" in found and expected == "'X'"


def test_a_role_of_two_playbooks_is_mended_by_the_one_of_its_area() -> None:
    host = events.Event(host="spark1", role="gpu_runtime", area="host", task="x", outcome="changed", result={})
    assert (one(host).area, one(host).fix[:19]) == ("hosts", "playbooks/nodes.yml")
    shared = events.Event(host="cluster", role="gpu_runtime", area="cluster", task="x", outcome="changed", result={})
    assert (one(shared).area, one(shared).fix[:17]) == ("cluster", "playbooks/gpu.yml")


def rank(**more: Any) -> dict[str, Any]:
    return {"rank": "0", "pod": "p", "node": "spark1", "ready": True, "restarts": 0, "config_hash": "new",
            "state": "ready", "cause": "", "supervisor": None, **more}  # fmt: skip


def group(*there: dict[str, Any]) -> dict[str, Any]:
    """As a picture has it."""
    now = state(Observed("x", "x", {}, True, {}, {}, "", ()), there)
    return {"state": now, "word": WORDS[now], "cause": "", "ranks": there}


def test_ranks_are_judged_by_hash_by_what_they_read_and_by_readiness() -> None:
    applied = serving.Applied("x", "new", "plan1")

    def judged(*there: dict[str, Any]) -> list[tuple[str, str]]:
        return [(finding.where, finding.message) for finding in serving.ranks(applied, group(*there), [], [])]

    assert judged(rank(supervisor={"read": "plan1"})) == []
    assert judged(rank(config_hash="old")) == [("spark1", "config old")]
    assert judged(rank(supervisor={"read": "plan0"})) == [("spark1", "it read plan plan0")]
    away = rank(ready=False, state="ContainerCreating", cause="the attachment rail-a-vf0 is not in the cluster")
    assert judged(away)[0][1].endswith(
        "(ContainerCreating, 0 restarts): the attachment rail-a-vf0 is not in the cluster"
    )
    assert judged(rank(), rank(rank="1", node="spark2", pod="", state="no pod"))[0] == (
        "spark2",
        "the group lacks a rank: no pod",
    )
    broken = rank(supervisor={"rails": ["rail b: net2 has no carrier: cable, or the switch's port"]})
    assert judged(broken)[0][1].startswith("rail b: net2 has no carrier")


def test_who_serves_instead_and_what_was_left_behind_is_said() -> None:
    applied = serving.Applied("x", "new")
    assert serving.ranks(applied, group(), [], [])[0].message == "nothing served"
    (finding,) = serving.ranks(applied, group(), ["y"], [])
    assert finding.message == "y is there instead" and "playbooks/switch.yml -e profile=x" in finding.fix
    (finding,) = serving.ranks(applied, group(rank()), [], ["Service old", "ConfigMap old-files"])
    assert finding.severity == "warning" and "Service old, ConfigMap old-files" in finding.message


def test_after_a_switch_the_doctor_judges_what_serves_and_its_cures_mean_that(tmp_path: Path) -> None:
    """On the old code: three lines in red about the inventory's profile, each with another cure."""
    told = records.judged({"profile": "super"}, "", "ultra")
    assert (told["profile"], told["words"]) == ("super", "-e profile=super")
    seen = [events.Event(host="cluster", role="doctor", area="serving", task="x", outcome="judged", result=told)]
    report = doctor.report([*seen, event("changed", "model_serving", differing=[
        {"kind": "Service", "name": "s", "diff": {}}])], NODES)  # fmt: skip
    remark, change = report.findings
    assert (remark.where, remark.area, remark.message, remark.severity) == (
        "cluster",
        "serving",
        "super serves",
        "info",
    )
    assert "playbooks/switch.yml -e profile=ultra" in remark.fix and report.cells()["spark1"]["serving"] == "ok"
    assert change.fix.startswith(
        "playbooks/serve.yml -e profile=super puts it right (site.yml --tags serve -e profile=super"
    )
    assert doctor.report(seen, NODES).good
    assert records.judged({"profile": "super"}, "", "super") == {"profile": "super", "words": "", "rows": []}
    assert records.judged({}, "", "ultra")["profile"] == "ultra"
    asked = records.judged({"profile": "super"}, "mini", "ultra")
    assert (asked["profile"], asked["words"], asked["rows"]) == ("mini", "-e profile=mini", [])


@pytest.mark.parametrize(("pods", "said"), [(None, ""), ((1, 2), ""), ((0, 1), "(1 there)"), ((0, 0), "(0 there)")])
def test_a_name_service_that_is_down_is_seen(pods: tuple[int, int] | None, said: str) -> None:
    found = kubernetes.names(NS(name="home"), pods)
    assert len(found) == bool(said) and all(said in finding.message for finding in found)


def test_weights_that_nobody_verified_are_missing_not_fine() -> None:
    whole = {"answer": [{"id": "a/b", "ok": True, "commit": "c", "manifest": "m", "problems": []}]}
    assert list(serving.weights(["spark1"], {"spark1": whole})) == []
    (finding,) = serving.weights(["spark1"], {"spark1": {"msg": "spark1: its store program said: nothing"}})
    assert "said: nothing" in finding.message and "models.yml" not in finding.fix
    (finding,) = serving.weights(
        ["spark1"], {"spark1": {"answer": [{"id": "a/b", "ok": False, "problems": ["f: missing"]}]}}
    )
    assert finding.message == "f: missing"


OSS, QWEN = "openai--gpt-oss-120b", "radixark--qwen3.8-27b-nvfp4"


def rendered(profile: str = OSS, at: str = "spark1") -> RenderedGroup:
    """A group of one rank, on a node that the cluster calls otherwise than the inventory."""
    site = case.cluster()
    nodes = [node.model_copy(update={"kubernetes_node": at}) if not n else node for n, node in enumerate(site.nodes)]
    return RenderedGroup(case.render(profile, site.model_copy(update={"nodes": nodes}), force=True), "refuse")


def test_ranks_are_told_by_the_inventory_s_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cluster may call a node otherwise; what is said of no known node belongs to nobody's row."""
    mine = rendered(at="gx10-1")
    cluster: Any = FleetCluster(mine.rendered.objects)
    cluster.nodes = lambda: {"gx10-1": {"ready": True}}
    installed(cluster, monkeypatch)
    monkeypatch.setattr(look.leftovers, "take", lambda reached, mine, dry: [])
    assert look.judged(cluster, mine) == []
    for item in cluster.objects:
        if item["kind"] == "StatefulSet":
            item["metadata"]["annotations"][names.CONFIG_HASH] = "old"
    (finding,) = look.judged(cluster, mine)
    assert (finding.where, finding.message) == ("spark1", "config old")
    cluster.objects = []
    (finding,) = look.judged(cluster, mine)
    assert finding.message == "nothing served"


def test_a_group_beside_another_is_not_told_that_the_other_is_there_instead(monkeypatch: pytest.MonkeyPatch) -> None:
    mine, other = rendered(), rendered(QWEN)
    cluster: Any = FleetCluster(other.rendered.objects)
    installed(cluster, monkeypatch)
    assert look.judged(cluster, mine)[0].message == f"{QWEN} is there instead"
    (finding,) = look.judged(cluster, mine, listed=True)
    assert (finding.message, finding.fix[:19]) == ("nothing served", "playbooks/serve.yml")
    cluster.objects, cluster.asleep = mine.rendered.objects, [OSS]
    assert look.judged(cluster, mine, listed=True, on_demand=True) == []
    assert look.judged(cluster, mine, listed=True)[0].message == "nothing served", "somebody scaled it down"
