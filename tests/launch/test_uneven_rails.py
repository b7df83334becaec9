"""Rails that are not alike: the whole port to the pods where a half has no functions, and cables in other cages."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from sparkloom.base.errors import InputError
from sparkloom.inputs import profile
from sparkloom.inputs.cluster import Cluster
from sparkloom.inputs.inventory import from_vars
from sparkloom.launch import downloads, fabric
from sparkloom.launch.resolve import resolve
from sparkloom.onnode.now.labels import NETWORKS
from sparkloom.render import manifests
from sparkloom.site import nodefiles
from sparkloom.site.checks import bandwidth, host, rails
from tests.launch.test_fabric import RAILS, variables
from tests.site.checks.test_preflight import Expected, at, machine

PAIR = "nvidia--minimax-m2.5-nvfp4--2node"
OUTER = [("enp1s0f1np1", "0000:01:00.1"), ("enP2p1s0f1np1", "0002:01:00.1")]


def site(count: int = 2, *, half: str | None = None, outer: str | None = None, **settings: Any) -> Cluster:
    """`half`: rail b's way into pods; `outer`: the node whose cable is in the outer cage."""
    told: list[dict[str, Any]] = [dict(rail) for rail in RAILS]
    if half:
        told[1]["attach"] = half
    if outer:
        for rail, (pf, pci) in zip(told, OUTER, strict=True):
            rail["ports"] = {outer: {"pf": pf, "pci": pci}}
    return from_vars(variables(count, rails=told, **settings))


def networks(where: Cluster) -> list[list[str]]:
    """By rank, the attachments that its pod asks for."""
    objects = manifests.build(resolve(profile.load(PAIR), where), where, "refuse")[0]
    pods = [item["spec"]["template"]["metadata"] for item in objects if item["kind"] == "StatefulSet"]
    return [[each["name"] for each in json.loads(pod["annotations"][NETWORKS])] for pod in pods]


def devices(where: Cluster) -> dict[str, str]:
    return {a.name: a.interface for a in fabric.attachments(where)}


def test_pods_get_the_whole_port_where_the_site_says_so() -> None:
    where = site(attach="pf")
    mine = fabric.plan(where).of("spark1")
    assert [(e.interface, e.hca, e.mac, e.cidr) for e in mine] == [
        ("enp1s0f0np0", "rocep1s0f0", "", "192.168.100.11/24"),
        ("enP2p1s0f0np0", "roceP2p1s0f0", "", "192.168.101.11/24"),
    ]
    assert devices(where) == {"rail-a-pf": "enp1s0f0np0", "rail-b-pf": "enP2p1s0f0np0"}
    assert networks(where) == [["rail-a-pf", "rail-b-pf"]] * 2
    env = {v.name: v.value for v in resolve(profile.load(PAIR), where).ranks[0].env}
    assert env["NCCL_IB_HCA"] == "=rocep1s0f0,roceP2p1s0f0"
    links = fabric.netplan(fabric.plan(where), "spark1")["network"]["ethernets"]
    assert {name: link["addresses"] for name, link in links.items()} == {
        "enp1s0f0np0": ["192.168.100.11/24"], "enP2p1s0f0np0": ["192.168.101.11/24"],
    }  # fmt: skip


def test_functions_on_one_half_only() -> None:
    where = site(half="pf")
    assert devices(where) == {
        "rail-a-vf0": "enp1s0f0v0", "rail-a-vf1": "enp1s0f0v1", "rail-b-pf": "enP2p1s0f0np0",
    }  # fmt: skip
    plan = fabric.plan(where)
    assert [e.interface for e in plan.at_host() if e.node == "spark2"] == ["enp1s0f0v1", "enP2p1s0f0np0"]
    assert downloads.addresses(where, "spark2") == ["192.168.100.28", "192.168.101.12"]
    files = nodefiles.every(where, plan)["spark1"]
    told = json.loads(files["functions_file"])["rails"]
    assert [(rail["count"], len(rail["functions"]), rail.get("whole", False)) for rail in told] == [
        (2, 2, False), (0, 0, True),
    ]  # fmt: skip
    assert [link["interface"] for link in files["links"]] == [
        "enp1s0f0np0", "enp1s0f0v0", "enp1s0f0v1", "enP2p1s0f0np0",
    ]  # fmt: skip
    assert set(yaml.safe_load(files["netplan"])["network"]["ethernets"]) == {x["interface"] for x in files["links"]}
    pings = rails.pings(where, plan)["spark1"]
    assert [(p["interface"], p["address"]) for p in pings] == [
        ("enp1s0f0v1", "192.168.100.28"), ("enP2p1s0f0np0", "192.168.101.12"),
    ]  # fmt: skip
    runs = bandwidth.tests(where, plan, ["spark1", "spark2"], size=1, iterations=1, queue_pairs=1)["rounds"][0]
    assert [run["interface"] for run in runs["spark1"]] == ["enp1s0f0v1", "enP2p1s0f0np0"]


def test_whose_mac_answers_for_a_whole_port_is_not_ours_to_say() -> None:
    where = site(attach="pf")
    plan = fabric.plan(where)
    ping = {**rails.pings(where, plan)["spark1"][0], "ok": True, "small_ok": True, "neighbour": "4c:bb:47:00:00:01"}
    assert list(rails._neighbours("spark1", {"pings": [ping]})) == []


def test_preflight_asks_for_functions_only_where_pods_get_them() -> None:
    probes = {node: machine(node) for node in ("spark1", "spark2")}
    for probe in probes.values():
        at(probe, "0002:01:00.0").update(total_vfs=0)
    found = host.judge(site(), probes, Expected(driver="580.159"))
    assert len(found) == 2 and all("attach: pf for rail b" in finding.fix for finding in found)
    assert host.judge(site(half="pf"), probes, Expected(driver="580.159")) == []


def test_a_cable_in_the_other_cage_has_its_own_port_and_attachment() -> None:
    where = site(outer="spark2")
    assert [(e.interface, e.hca, e.address) for e in fabric.plan(where).of("spark2", 0)] == [
        ("enp1s0f1v0", "rocep1s0f1v0", "192.168.100.12"),
        ("enP2p1s0f1v0", "roceP2p1s0f1v0", "192.168.101.12"),
    ]
    assert networks(where) == [
        ["rail-a-vf0", "rail-b-vf0"],
        ["rail-a-vf0-enp1s0f1np1", "rail-b-vf0-enp2p1s0f1np1"],
    ]
    assert devices(where)["rail-b-vf0-enp2p1s0f1np1"] == "enP2p1s0f1v0"
    env = {v.name: v.value for v in resolve(profile.load(PAIR), where).ranks[1].env}
    assert env["NCCL_IB_HCA"] == "=rocep1s0f1v0,roceP2p1s0f1v0"
    files = nodefiles.every(where, fabric.plan(where))
    assert '"pf": "enp1s0f1np1"' in files["spark2"]["functions_file"]
    assert "enp1s0f1np1:" in files["spark2"]["netplan"] and "enp1s0f1np1" not in files["spark1"]["netplan"]


def test_preflight_looks_at_the_port_of_each_node_and_says_how_to_declare_it() -> None:
    probes = {node: machine(node) for node in ("spark1", "spark2")}
    for port in probes["spark2"]["ports"][:4]:
        port.update(carrier=not port["carrier"], speed=200_000)
    assert host.judge(site(outer="spark2"), probes, Expected(driver="580.159")) == []
    found = host.judge(site(), probes, Expected(driver="580.159"))
    assert [(finding.where, finding.rule) for finding in found] == [("spark2", "rail a"), ("spark2", "rail b")]
    assert 'ports: {spark2: {pf: enp1s0f1np1, pci: "0000:01:00.1"}}' in found[0].fix


@pytest.mark.parametrize(
    ("rail", "ports", "key", "says"),
    [
        (0, {"spark9": OUTER[0]}, "fabric.rails.0.ports.spark9", "no Spark of this inventory"),
        (0, {"spark2": ("enp1s0f1np1", "0000:01:00.0")}, "fabric.rails.0.ports.spark2.pci", "means 0000:01:00.1"),
        (1, {"spark2": OUTER[0]}, "fabric.rails.1.ports.spark2.pci", "share one x4 link"),
        (1, {"spark2": ("enp1s0f0np0", "0000:01:00.0")}, "fabric.rails.1.ports.spark2.pci", "is rail 'a' too"),
        (0, {"spark2": ("enP7s7", "0007:01:00.0")}, "fabric.rails.0.ports.spark2.pf", "management interface"),
    ],
)
def test_a_port_that_cannot_be_is_refused_by_name(
    rail: int, ports: dict[str, tuple[str, str]], key: str, says: str
) -> None:
    told: list[dict[str, Any]] = [dict(each) for each in RAILS]
    told[rail]["ports"] = {node: {"pf": pf, "pci": pci} for node, (pf, pci) in ports.items()}
    with pytest.raises(InputError) as caught:
        from_vars(variables(2, rails=told))
    assert any(p.message.startswith(f"{key}:") and says in p.message for p in caught.value.problems), caught.value
