"""Each check says no for its own reason, and yes to a machine that is as planned."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from sparkloom.base.finding import Finding
from sparkloom.inputs import inventory, profile
from sparkloom.launch import fabric
from sparkloom.launch.groups import Placed
from sparkloom.launch.resolve import Launch, resolve
from sparkloom.site import ansible
from sparkloom.site.checks import kubernetes, networks, rails

CLUSTER = inventory.load()
PLAN = fabric.plan(CLUSTER)
NODES = [node.name for node in CLUSTER.nodes]
TWO = "openai--gpt-oss-120b--2node"


def machine(node: str) -> dict[str, Any]:
    link = {"up": True, "carrier": True, "speed": 200_000, "mtu": 9000, "addresses": [], "total_vfs": 16, "gids": []}
    links: dict[str, Any] = {}
    for e in (e for e in PLAN.endpoints if e.node == node):
        gids = [
            {"index": 0, "gid": "fe80::1", "type": "RoCE v2"},
            {"index": 5, "gid": f"::ffff:{e.address}", "type": "RoCE v2"},
        ]
        links[e.interface] = {**copy.deepcopy(link), "addresses": [e.cidr], "gids": gids}
    return {
        "links": links,
        "rdma_ports": {"rocep1s0f0": "4: ACTIVE"},
        "in_pods": [],
        "pings": [{**p, "ok": True, "small_ok": True, "neighbour": p["mac"]} for p in rails.pings(CLUSTER, PLAN)[node]],
    }


@pytest.fixture
def probes() -> dict[str, dict[str, Any]]:
    return {node: machine(node) for node in NODES}


def test_a_limited_run_judges_its_own_nodes_and_blames_no_other(probes: dict[str, Any]) -> None:
    alone = {"spark2": probes["spark2"]}
    assert rails.judge(CLUSTER, PLAN, alone, {"spark2"}) == []
    assert {finding.where for finding in rails.judge(CLUSTER, PLAN, alone)} == {"spark1", "spark3", "spark4"}
    for ping in alone["spark2"]["pings"]:
        ping["ok"] = ping["small_ok"] = ping["node"] == "spark1"
    findings = rails.judge(CLUSTER, PLAN, alone, {"spark2"})
    assert findings and {finding.severity for finding in findings} == {"warning"} and "--limit" in findings[0].fix
    findings = rails.judge(CLUSTER, PLAN, {**alone, "spark3": probes["spark3"]}, {"spark2", "spark3"})
    assert {finding.severity for finding in findings} == {"error"} and all(
        "spark3" in finding.rule for finding in findings
    )


def test_four_good_sparks_pass(probes: dict[str, Any]) -> None:
    assert rails.judge(CLUSTER, PLAN, probes) == []


VF = fabric.vf_interface("enp1s0f0np0", 0)
RAIL_FAULTS: list[tuple[Callable[[dict[str, Any]], Any], str]] = [
    (lambda p: p["links"].pop(VF), f"no {VF}, on the host or in a pod"),
    (lambda p: p["links"][VF].update(carrier=False), "down"),
    (lambda p: p["links"][VF].update(mtu=1500), "MTU 1500"),
    (lambda p: p["links"][VF].update(addresses=[]), "no IPv4 address"),
    (lambda p: p["links"][VF].update(addresses=["10.0.0.1/24"]), "10.0.0.1/24"),
    (lambda p: p["links"][VF]["gids"].pop(1), "fe80::1"),
    (lambda p: p["links"][VF]["addresses"].append("10.0.0.1/24"), f"{VF} with 10.0.0.1/24"),
    (lambda p: p["links"].update({"enp1s0f0np0": {"addresses": ["192.168.100.11/24"]}}), "spark1's on this rail"),
    (lambda p: p["links"][VF]["gids"][1].update(type="IB/RoCE v1"), "RoCE v1"),
    (lambda p: p["links"][VF].update(gids=[]), "no RDMA device"),
    (lambda p: p["pings"][0].update(ok=False), "smaller ones pass"),
    (lambda p: p["pings"][0].update(ok=False, small_ok=False), "nothing passes"),
    (lambda p: p["pings"][0].update(neighbour="52:54:00:00:00:01"), "is at 52:54:00:00:00:01"),
]


@pytest.mark.parametrize(("fault", "found"), RAIL_FAULTS)
def test_one_rail_fault_gives_one_finding(
    probes: dict[str, Any], fault: Callable[[dict[str, Any]], Any], found: str
) -> None:
    fault(probes["spark4"])
    (finding,) = rails.judge(CLUSTER, PLAN, probes)
    assert finding.where == "spark4" and found in finding.message and finding.fix


def test_a_function_that_serves_in_a_pod_is_where_it_belongs(probes: dict[str, Any]) -> None:
    probes["spark4"]["links"].pop(VF)
    probes["spark4"]["in_pods"] = [VF]
    assert rails.judge(CLUSTER, PLAN, probes) == []


def test_a_stranger_that_is_let_in_is_named_with_the_way(probes: dict[str, Any]) -> None:
    door = {"by": "pod", "node": "spark1", "address": "192.168.100.11", "port": 20100, "how": "refuses"}
    refused = {**door, "by": "peer", "port": 20101}
    probes["spark2"]["let_in"] = {"by": ["peer", "pod"], "doors": [door, refused]}
    (finding,) = rails.judge(CLUSTER, PLAN, probes)
    assert finding.where == "spark2" and "playbooks/fabric.yml" in finding.fix
    assert "a pod of the cluster's network reaches spark1's 192.168.100.11" in finding.message
    refused["how"] = "answers"  # a host refuses a peer where no pod has the function; an engine answers
    assert len(rails.judge(CLUSTER, PLAN, probes)) == 2
    probes["spark2"]["pings"][0].update(ok=False)  # somebody else's matter
    assert {finding.rule for finding in rails.strangers(probes)} == {"private rails"}
    assert rails.strangers(probes, ["spark1"]) == []


def test_an_open_site_is_not_knocked_at() -> None:
    open_rails = CLUSTER.fabric.model_copy(update={"private": False})
    assert rails.unanswered(CLUSTER.model_copy(update={"fabric": open_rails}), PLAN, "spark2") == {}
    asked = rails.unanswered(CLUSTER, PLAN, "spark2")["doors"]
    assert {door["by"] for door in asked} == {"pod", "lan", "peer"}
    assert "spark2" not in {door["node"] for door in asked if door["by"] != "pod"}


def test_pings_go_over_what_stays_on_the_host_at_full_size() -> None:
    pings = rails.pings(CLUSTER, PLAN)
    assert set(pings) == set(NODES)
    for node, wanted in pings.items():
        assert len(wanted) == len(CLUSTER.fabric.rails) * (len(NODES) - 1)
        assert all(p["payload"] == 8972 and p["interface"].endswith("v1") and p["node"] != node for p in wanted)


def test_nodes_with_the_same_trouble_share_a_line(probes: dict[str, Any]) -> None:
    for node in NODES[1:]:
        probes[node]["links"][VF]["mtu"] = 1500
    result = ansible.verdict(rails.judge(CLUSTER, PLAN, probes), "fine")
    assert result["failed"]
    assert "3 checks failed on 3 nodes" in result["msg"]
    assert result["msg"].count("spark2,spark3,spark4  rail a VF 0") == 1


def test_warnings_alone_do_not_fail() -> None:
    findings = [Finding("a", "clock", "x", "y", "z", "warning")]
    assert ansible.verdict(findings, "fine")["failed"] is False
    assert ansible.verdict([], "fine") == {"failed": False, "msg": "fine", "rows": []}


def test_a_node_that_reaches_nobody_is_blamed_once_per_rail(probes: dict[str, Any]) -> None:
    for ping in probes["spark2"]["pings"]:
        ping.update(ok=False, small_ok=True)
    findings = rails.judge(CLUSTER, PLAN, probes)
    assert [finding.rule for finding in findings] == ["enp1s0f0v1 to any other node", "enP2p1s0f0v1 to any other node"]
    assert all("of spark2" in finding.fix for finding in findings)


def launch(fraction: float | None = None) -> Launch:
    """Two ranks."""
    made = resolve(profile.load(TWO), CLUSTER)
    return replace(made, seat=Placed("g", TWO, ("spark1", "spark2"), fraction=fraction))


@pytest.fixture
def facts() -> dict[str, Any]:
    nodes = {node: {"ready": True, "gpus": 1, "cordoned": False} for node in NODES}
    return {"nodes": nodes, "runtime_classes": ["nvidia"], "attachments": networks.planned(CLUSTER)}


def test_a_cluster_with_everything_passes(facts: dict[str, Any]) -> None:
    facts["nodes"]["spark4"]["gpus"] = 0  # names no rank
    assert kubernetes.judge(CLUSTER, launch(), facts) == []


@pytest.mark.parametrize(
    ("fault", "check", "found"),
    [
        (lambda f: f.update(runtime_classes=[]), "RuntimeClass", "no 'nvidia'"),
        (lambda f: f["attachments"].pop("rail-b-vf0"), "networks", "no attachment rail-b-vf0"),
        (
            lambda f: f["attachments"].update({"rail-a-vf0": '{"type": "macvlan"}'}),
            "networks",
            'rail-a-vf0: {"type": "macvlan"}',
        ),
        (lambda f: f["nodes"].pop("spark2"), "node", "no spark2 (nodes: spark1, spark3, spark4)"),
        (lambda f: f["nodes"]["spark2"].update(ready=False), "node", "not Ready"),
        (lambda f: f["nodes"]["spark2"].update(cordoned=True), "node", "cordoned"),
        (lambda f: f["nodes"]["spark2"].update(gpus=0), "GPU", "no allocatable nvidia.com/gpu"),
    ],
)
def test_what_a_cluster_lacks(facts: dict[str, Any], fault: Callable[[Any], Any], check: str, found: str) -> None:
    fault(facts)
    (finding,) = kubernetes.judge(CLUSTER, launch(), facts)
    assert (finding.rule, finding.message) == (check, found) and finding.fix


def test_a_group_that_shares_its_spark_is_not_started_where_a_gpu_is_offered_once(facts: dict[str, Any]) -> None:
    """Red before: the second pod there waited for a GPU until the start was given up."""
    findings = kubernetes.judge(CLUSTER, launch(0.42), facts)
    assert {f.rule for f in findings} == {"GPU"} and "fraction: 0.42" in findings[0].message
    assert "playbooks/gpu.yml" in findings[0].fix
    for node in facts["nodes"].values():
        node["gpus"] = 64
    assert kubernetes.judge(CLUSTER, launch(0.42), facts) == []


def test_every_network_of_the_plan_is_read_back() -> None:
    planned = networks.planned(CLUSTER)
    assert set(planned) == {"rail-a-vf0", "rail-a-vf1", "rail-b-vf0", "rail-b-vf1"}
    assert networks.judge(CLUSTER, planned, planned) == []
    spaced = {name: json.dumps(json.loads(text), indent=4) for name, text in planned.items()}
    assert networks.judge(CLUSTER, planned, spaced) == [], "another layout of the same JSON"
    (finding,) = networks.judge(CLUSTER, planned, {**planned, "rail-b-vf1": "{"})
    assert "rail-b-vf1: no JSON" in finding.message
