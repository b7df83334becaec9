"""Three Sparks in a ring without a switch: a subnet for each half of each cable, one address per rank that both reach.

Red before in all: fabric.ring was no key, and preflight and discover refused the cabling.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from ipaddress import IPv4Interface
from typing import Any

import pytest

from sparkloom import case
from sparkloom.base.errors import InputError
from sparkloom.inputs import inventory, profile
from sparkloom.inputs.cluster import Cluster
from sparkloom.inputs.inventory import from_vars
from sparkloom.launch import downloads, fabric
from sparkloom.launch.resolve import Launch, resolve
from sparkloom.measure.allreduce import verdict
from sparkloom.onnode.now.labels import NETWORKS
from sparkloom.render import manifests
from sparkloom.render.manifests import supervision
from sparkloom.site import nodefiles
from sparkloom.site.checks import bandwidth, host, rails
from tests.launch.test_fabric import RAILS, variables
from tests.places import REPO
from tests.site.checks.test_preflight import Expected, at, machine
from tests.site.foreign import published

ONE, TWO, THREE = RING = ("spark1", "spark2", "spark3")
PIPELINE = "nvidia--minimax-m2.5-nvfp4--pp3"
PAIR = "nvidia--minimax-m2.5-nvfp4--2node"
OUTER = {"enp1s0f0np0": "enp1s0f1np1", "enP2p1s0f0np0": "enP2p1s0f1np1"}


def site(ring: tuple[str, ...] = RING, count: int = 3, **settings: Any) -> Cluster:
    return from_vars(variables(count, ring=list(ring), **settings))


def launched(where: Cluster, name: str = PIPELINE) -> Launch:
    return resolve(profile.load(name), where)


def env(launch: Launch, rank: int) -> dict[str, str]:
    return {variable.name: variable.value for variable in launch.ranks[rank].env}


# --- addresses --------------------------------------------------------------------------------------------------


def test_every_half_of_every_cable_has_a_subnet_and_two_ends() -> None:
    plan = fabric.plan(site())
    assert plan.rails == ("a1", "a2", "a3", "b1", "b2", "b3")
    ends = {(e.rail, e.node): e for e in plan.endpoints if e.vf == 0}
    assert Counter(rail for rail, _ in ends) == dict.fromkeys(plan.rails, 2)
    subnets = {
        rail: {IPv4Interface(e.cidr).network for (its, _), e in ends.items() if its == rail} for rail in plan.rails
    }
    assert all(len(networks) == 1 for networks in subnets.values())
    assert len({network for networks in subnets.values() for network in networks}) == 6
    assert [ends["a1", node].pf for node in (ONE, TWO)] == ["enp1s0f0np0", "enp1s0f1np1"]
    assert [ends["b3", node].pf for node in (THREE, ONE)] == ["enP2p1s0f0np0", "enP2p1s0f1np1"]


def test_each_spark_has_all_four_ports_the_way_to_the_next_one_first() -> None:
    plan = fabric.plan(site())
    for node, told in zip(
        RING, (["a1", "b1", "a3", "b3"], ["a2", "b2", "a1", "b1"], ["a3", "b3", "a2", "b2"]), strict=True
    ):
        assert [e.rail for e in plan.of(node, 0)] == told
        assert [e.pf for e in plan.of(node, 0)] == [*OUTER, *OUTER.values()]
    assert len({e.mac for e in plan.endpoints}) == len({e.address for e in plan.endpoints}) == 24


def test_netplan_gives_every_port_of_a_node_its_own_cable() -> None:
    links = fabric.netplan(fabric.plan(site()), TWO)["network"]["ethernets"]
    given = {name: link["addresses"] for name, link in links.items() if name.endswith("v0")}
    assert given == {
        "enp1s0f0v0": ["192.168.100.76/26"], "enP2p1s0f0v0": ["192.168.101.76/26"],
        "enp1s0f1v0": ["192.168.100.12/26"], "enP2p1s0f1v0": ["192.168.101.12/26"],
    }  # fmt: skip
    told = nodefiles.every(site(), fabric.plan(site()))[TWO]
    described = json.loads(told["functions_file"])["rails"]
    assert [entry["pf"] for entry in described] == [*OUTER, *OUTER.values()]
    assert all(len(entry["functions"]) == 2 for entry in described)


def test_neighbours_are_pinged_by_their_cable_and_by_nothing_else() -> None:
    where = site()
    asked = rails.pings(where, fabric.plan(where))
    for node in RING:
        assert Counter(ping["node"] for ping in asked[node]) == dict.fromkeys(set(RING) - {node}, 2)
    ends = {e.address: e.rail for e in fabric.plan(where).at_host()}
    mine = {e.interface: e.rail for e in fabric.plan(where).at_host() if e.node == ONE}
    assert all(ends[ping["address"]] == mine[ping["interface"]] for ping in asked[ONE])


def test_bandwidth_is_measured_between_the_ends_of_a_cable() -> None:
    where = site()
    told = bandwidth.tests(where, fabric.plan(where), list(RING), size=65536, iterations=10, queue_pairs=4)
    runs = [run for turn in told["rounds"] for each in turn.values() for run in each]
    assert len(runs) == 12 and {len(served) for served in told["serve"].values()} == {4}
    where_is = {e.address: e.rail for e in fabric.plan(where).at_host()}
    assert all(where_is[run["address"]] == where_is[run["peer"]] == run["rail"] for run in runs)
    ports = [(run["server"], run["port"]) for run in runs]
    assert len(set(ports)) == len(ports)


def test_weights_go_by_the_cable_that_joins_the_two() -> None:
    where = site()
    assert downloads.addresses(where, ONE, TWO) == ["192.168.100.27", "192.168.101.27"]
    assert downloads.addresses(where, ONE, THREE) == ["192.168.100.155", "192.168.101.155"]
    assert len(downloads.addresses(where, ONE)) == 4


# --- pods and ranks ----------------------------------------------------------------------------------------------


def test_every_rank_reaches_every_others_own_address_over_the_cable_between_them() -> None:
    """By a subnet of its own ports, or by the one route that its first attachment brings."""
    for ring in (RING, (ONE, THREE, TWO), (TWO, THREE, ONE)):
        where = site(ring)
        launch = launched(where)
        known = {a.name: a for a in fabric.attachments(where)}
        for mine in launch.topology.places:
            reach = {e.rail: IPv4Interface(e.cidr).network for e in mine.endpoints}
            routes = dict(route for e in mine.endpoints for route in known[e.attachment].routes)
            assert len(routes) == 1
            for other in (place for place in launch.topology.places if place is not mine):
                (shared,) = {e.rail for e in mine.endpoints} & {e.rail for e in other.endpoints if e.half == "a"}
                gateways = {e.rail: e.address for e in other.endpoints}
                own = launch.topology.address(other)
                direct = IPv4Interface(f"{own}/32").ip in reach[shared]
                assert direct or routes[f"{own}/32"] == gateways[shared]


def test_pods_ask_for_four_attachments_and_the_first_brings_the_route() -> None:
    where = site()
    objects = manifests.build(launched(where), where, "refuse")[0]
    pods = [item["spec"]["template"]["metadata"] for item in objects if item["kind"] == "StatefulSet"]
    asked = [json.loads(pod["annotations"][NETWORKS]) for pod in pods]
    assert [[each["interface"] for each in told] for told in asked] == [["net1", "net2", "net3", "net4"]] * 3
    assert [each["name"] for each in asked[1]] == [
        "rail-a2-vf0", "rail-b2-vf0", "rail-a1-vf0-enp1s0f1np1", "rail-b1-vf0-enp2p1s0f1np1",
    ]  # fmt: skip
    definitions = {
        item["metadata"]["name"]: json.loads(item["spec"]["config"])["plugins"][0]["ipam"]
        for item in objects
        if item["kind"] == "NetworkAttachmentDefinition"
    }
    assert definitions["rail-a2-vf0"] == {
        "type": "static", "routes": [{"dst": "192.168.100.141/32", "gw": "192.168.100.77"}],
    }  # fmt: skip
    assert definitions["rail-b2-vf0"] == definitions["rail-a2-vf1"] == {"type": "static"}


def test_nccl_is_told_all_four_devices_and_to_look_where_they_lead() -> None:
    launch = launched(site())
    for rank in range(3):
        told = env(launch, rank)
        assert told["NCCL_IB_HCA"] == "=rocep1s0f0v0,roceP2p1s0f0v0,rocep1s0f1v0,roceP2p1s0f1v0"
        assert told["NCCL_IB_SUBNET_AWARE_ROUTING"] == told["NCCL_IB_MERGE_NICS"] == "1"
        assert (told["NCCL_IB_SUBNET_PREFIX_LEN"], told["NCCL_NET_PLUGIN"], told["NCCL_NET"]) == ("26", "none", "IB")
        assert (told["NCCL_SOCKET_IFNAME"], told["GLOO_SOCKET_IFNAME"]) == ("=net1", "net1")
        assert told["SGLANG_HOST_IP"] == launch.topology.places[rank].endpoints[0].address
    assert all("192.168.100.11:20000" in rank.argv for rank in launch.ranks), "rank 0's own address"
    wide = [{**rail, "subnet": f"10.7.{8 * number}.0/22"} for number, rail in enumerate(RAILS)]
    assert env(launched(site(rails=wide)), 0)["NCCL_IB_SUBNET_PREFIX_LEN"] == "24"


def test_the_page_says_what_nccl_is_told() -> None:
    """docs/rings.md has a column for two rails, one and a ring; a cell begins with the value."""
    page = (REPO / "docs/rings.md").read_text()
    rows = re.findall(r"^\| `(NCCL_\w+)` \| (.+?) \| (.+?) \| (.+?) \|$", page, re.M)
    told = (
        env(launched(from_vars(variables(2)), PAIR), 0),
        env(launched(from_vars(variables(2, rails=RAILS[:1])), PAIR), 0),
    )
    assert len(rows) == 5
    for name, *cells in rows:
        for cell, variables_ in zip(cells, (*told, env(launched(site()), 0)), strict=True):
            value = re.match(r"[`]?([^`:, ]+(,[^`:, ]+)*)", cell)[1]  # type: ignore[index]
            if value != "the":  # four devices
                assert variables_.get(name, "unset") == value, (name, cell)
    assert not {"NCCL_ALGO", "NCCL_IB_GID_INDEX"} & {name for each in told for name in each}


def test_the_log_must_show_both_halves_not_four_devices() -> None:
    """NCCL names a channel's device before it looks which one leads to the peer."""
    launch = launched(site())
    assert launch.fabric == ("a", "b")
    told = supervision.plan(launch, "refuse")
    assert told["nccl"] == "2.30.7" and "nccl" not in supervision.plan(launched(site(), PAIR), "refuse")
    assert told["rails"] == 2 and [len(member["rails"]) for member in told["members"]] == [4, 4, 4]


def test_two_of_the_three_are_served_by_the_cable_between_them() -> None:
    launch = launched(site(), PAIR)
    assert [[e.rail for e in place.endpoints] for place in launch.topology.places] == [["a1", "b1"], ["a1", "b1"]]
    assert [e.pf for e in launch.topology.places[1].endpoints] == list(OUTER.values())
    told = env(launch, 0)
    assert told["NCCL_IB_HCA"] == "=rocep1s0f0v0,roceP2p1s0f0v0" and "NCCL_IB_SUBNET_PREFIX_LEN" not in told
    assert not launch.topology.ring


def test_one_spark_of_a_ring_alone() -> None:
    assert launched(site(), "nvidia--nemotron-3-super-120b-a12b-nvfp4--vllm-1node").topology.head.endpoints == ()


# --- what is refused ---------------------------------------------------------------------------------------------


def test_an_image_must_say_that_its_nccl_can_do_it() -> None:
    """The pipeline's own image is SGLang 0.5.10rc0's, of before NCCL 2.30.7."""
    found = {finding.rule for finding in case.judge(PIPELINE, site()).findings}
    assert "nccl-ring-release" in found
    switch = from_vars(variables(3))
    assert "nccl-ring-release" not in {finding.rule for finding in case.judge(PIPELINE, switch).findings}
    assert "nccl-ring-release" not in {finding.rule for finding in case.judge(PAIR, site()).findings}


def test_three_tensor_ranks_are_refused_where_heads_do_not_divide() -> None:
    """Red before for models with one KV head: only KV heads were asked for."""
    from sparkloom.inputs.families import Facts
    from sparkloom.judge.rules.base import LaunchView
    from sparkloom.judge.rules.computed.parallel import kv_heads_split

    three = {"engine": "sglang", "release": "0.5.12", "nodes": 3, "tp": 3}
    (hit,) = kv_heads_split(LaunchView(**three, facts=Facts(q_heads=64, kv_heads=1)))  # type: ignore[arg-type]
    assert hit.message == "64 attention heads cannot be split over tp 3"
    assert not list(kv_heads_split(LaunchView(**three, facts=Facts(q_heads=48, kv_heads=3))))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("ring", "count", "words"),
    [
        (("spark1", "spark2"), 2, "two Sparks have one cable: leave fabric.ring out"),
        (("spark1", "spark2", "spark3", "spark4"), 4, "opposite Sparks have no cable"),
        (("spark1", "spark2", "spark3", "spark4", "spark5"), 5, "NCCL connects trees"),
        (("spark1", "spark2", "sparc3"), 3, "'sparc3' is no Spark of this inventory"),
        (("spark1", "spark2", "spark2"), 3, "spark2 stands there twice"),
        (("spark1", "spark2", "spark3"), 4, "spark4 is not in it"),
    ],
)
def test_other_rings_are_refused_by_what_nccl_cannot_do(ring: tuple[str, ...], count: int, words: str) -> None:
    with pytest.raises(InputError, match=r"fabric\.ring") as refused:
        site(ring, count)
    assert words in str(refused.value)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"ports": {"spark2": {"pf": "enp1s0f1np1", "pci": "0000:01:00.1"}}}, "take `ports` out"),
        ({"pf": "eth7"}, "does not say which port is the card's other one"),
        ({"name": "eighteen"}, "leaves no room for the cable's number"),
        ({"subnet": "192.168.100.0/27"}, "a cable's quarter of 192.168.100.0/27, 192.168.100.0/29 has no room"),
    ],
)
def test_rails_that_no_ring_can_have_are_refused(change: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError) as refused:
        site(rails=[{**RAILS[0], **change}, RAILS[1]])
    assert words in str(refused.value)


def test_the_size_that_is_advised_is_taken() -> None:
    site(rails=[{**RAILS[0], "subnet": "192.168.100.0/25"}, RAILS[1]])


# --- preflight ---------------------------------------------------------------------------------------------------


def ring_of_machines() -> dict[str, Any]:
    told = {node: machine(node) for node in RING}
    for probe in told.values():
        for pci in ("0000:01:00.1", "0002:01:00.1"):
            at(probe, pci).update(carrier=True, speed=200_000)
    return told


def test_preflight_looks_at_both_ports_of_every_spark() -> None:
    where = site()
    probes = ring_of_machines()
    assert not [f for f in host.judge(where, probes, Expected()) if f.rule.startswith("rail")]
    at(probes[TWO], "0000:01:00.1").update(carrier=False, speed=-1)
    (finding,) = [f for f in host.judge(where, probes, Expected()) if f.rule.startswith("rail")]
    assert (finding.where, finding.rule, finding.severity) == (TWO, "rail a", "error")
    assert "enp1s0f1np1 without carrier" in finding.message and "ports:" not in finding.fix


def test_somebody_elses_address_on_the_second_port_is_named() -> None:
    """NVIDIA's guide for three gives all four ports addresses in one file."""
    probes = ring_of_machines()
    text = published.netplan(published.CX7, enp1s0f1np1={"addresses": ["192.168.100.9/24"]})
    probes[ONE]["network"] = published.network(text, live={"enP7s7": ["192.168.1.11/24"]})
    (finding,) = [f for f in host.judge(site(), probes, Expected()) if f.rule.startswith("rail")]
    assert (finding.where, finding.rule) == (ONE, "rail a")
    assert "enp1s0f1np1 192.168.100.9/24" in finding.message and "fabric.rails[a].subnet" in finding.fix


def test_the_all_reduce_of_a_ring_is_judged_as_nvidias_script_does() -> None:
    assert verdict.least(2, 200, 3, ring=True) == 10.0
    assert verdict.least(2, 100, 3, ring=True) == 5.0
    assert verdict.least(2, 200, 3) > 10.0


def test_an_inventory_without_a_ring_is_planned_as_before() -> None:
    shipped = inventory.load()
    assert shipped.fabric.segments == shipped.fabric.rails
    assert all(not attachment.routes for attachment in fabric.attachments(shipped))
