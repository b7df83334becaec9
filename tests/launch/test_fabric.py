"""The fabric plan: addresses, names and MACs that never collide, and a refusal by name for all that would."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from sparkloom.base.errors import InputError
from sparkloom.inputs import profile
from sparkloom.inputs.cluster import Cluster
from sparkloom.inputs.inventory import from_vars, load
from sparkloom.launch import downloads, fabric
from sparkloom.launch.resolve import resolve
from tests.places import REPO

SHIPPED = load()
RAILS = [
    {"name": "a", "pf": "enp1s0f0np0", "pci": "0000:01:00.0", "subnet": "192.168.100.0/24"},
    {"name": "b", "pf": "enP2p1s0f0np0", "pci": "0002:01:00.0", "subnet": "192.168.101.0/24"},
]


def variables(
    count: int = 4, *, name: str = "gb10", rails: list[dict[str, str]] | None = None, **settings: Any
) -> dict[str, Any]:
    """What an inventory hands over, with `count` nodes."""
    return {
        "cluster": {"name": name},
        "fabric": {"rails": [dict(rail) for rail in rails or RAILS], "check_vf": 1, **settings},
        "nodes": [{"name": f"spark{number}"} for number in range(1, count + 1)],
    }


def cluster(count: int = 4, **settings: Any) -> Cluster:
    return from_vars(variables(count, **settings))


def test_shipped_plan_is_what_the_inventory_promises() -> None:
    plan = fabric.plan(SHIPPED)
    first = plan.of("spark1", vf=0)
    assert [(e.interface, e.cidr, e.hca, e.pf_hca) for e in first] == [
        ("enp1s0f0v0", "192.168.100.11/24", "rocep1s0f0v0", "rocep1s0f0"),
        ("enP2p1s0f0v0", "192.168.101.11/24", "roceP2p1s0f0v0", "roceP2p1s0f0"),
    ]
    assert [e.address for e in plan.of("spark4", vf=1)] == ["192.168.100.30", "192.168.101.30"]
    assert {e.mtu for e in plan.endpoints} == {9000}
    assert [a.name for a in plan.attachments] == ["rail-a-vf0", "rail-a-vf1", "rail-b-vf0", "rail-b-vf1"]


@pytest.mark.parametrize("rails", [RAILS, RAILS[:1]], ids=["two rails", "one rail"])
@pytest.mark.parametrize("count", [2, 3, 4, 5, 6, 7, 8, 16, 17, 64])
def test_nothing_is_given_twice(count: int, rails: list[dict[str, str]]) -> None:
    plan = fabric.plan(cluster(count, rails=rails, vfs_per_rail=3, check_vf=2))
    assert len(plan.endpoints) == count * len(rails) * 2
    assert len({e.address for e in plan.endpoints}) == len(plan.endpoints)
    assert len({e.mac for e in plan.endpoints}) == len(plan.endpoints)
    assert len({(e.node, e.interface) for e in plan.endpoints}) == len(plan.endpoints)
    assert all(int(e.mac[:2], 16) & 3 == 2 for e in plan.endpoints), "locally administered, unicast"


def test_one_spark_alone_has_no_rails_whatever_the_shipped_file_says() -> None:
    plan = fabric.plan(cluster(1))
    assert (plan.rails, plan.endpoints, plan.attachments) == ((), (), ())
    assert plan.of("spark1") == ()


def test_several_sparks_without_a_cable_say_so_and_hand_weights_on_by_the_management_network() -> None:
    data = variables(2, rails=RAILS)
    data["fabric"]["rails"] = []
    for number, node in enumerate(data["nodes"], 1):
        node["management_address"] = f"192.168.1.{number}"
    apart = from_vars(data)
    assert fabric.plan(apart).endpoints == ()
    assert [downloads.addresses(apart, node) for node in ("spark1", "spark2")] == [["192.168.1.1"], ["192.168.1.2"]]
    with pytest.raises(InputError, match=r"launch.parallel.nodes = 2, but fabric.yml of 'gb10' has no rails"):
        resolve(profile.load("nvidia--minimax-m2.5-nvfp4--2node"), apart)


def test_a_new_node_moves_nobody() -> None:
    before, after = (fabric.plan(cluster(count)).endpoints for count in (4, 8))
    assert set(before) <= set(after)


def test_two_sites_on_one_switch_share_no_mac() -> None:
    here, there = (fabric.plan(cluster(name=name)).endpoints for name in ("gb10", "upstairs"))
    assert not {e.mac for e in here} & {e.mac for e in there}


def test_order_in_the_inventory_does_not_matter_where_indexes_are_given() -> None:
    data = variables()
    for number, node in enumerate(data["nodes"], 1):
        node["fabric_index"] = number
    turned = {**data, "nodes": data["nodes"][::-1]}
    assert set(fabric.plan(from_vars(data)).endpoints) == set(fabric.plan(from_vars(turned)).endpoints)


@pytest.mark.parametrize(
    ("pf", "pci", "vf", "hca"),
    [
        ("enp1s0f0np0", "0000:01:00.0", "enp1s0f0v1", "rocep1s0f0"),
        ("enP2p1s0f1np1", "0002:01:00.1", "enP2p1s0f1v1", "roceP2p1s0f1"),
        ("enp65s0f0np0", "0000:41:00.0", "enp65s0f0v1", "rocep65s0f0"),
        ("cx7a", "000f:41:00.1", "cx7av1", "roceP15p65s0f1"),
    ],
)
def test_names_of_links_and_rdma_devices(pf: str, pci: str, vf: str, hca: str) -> None:
    assert (fabric.vf_interface(pf, 1), fabric.hca(pf, pci)) == (vf, hca)


def test_netplan_gives_the_host_what_pods_will_have() -> None:
    plan = fabric.plan(SHIPPED)
    data = fabric.netplan(plan, "spark2")
    links = data["network"]["ethernets"]
    assert list(links) == ["enp1s0f0np0", "enP2p1s0f0np0", "enp1s0f0v0", "enp1s0f0v1", "enP2p1s0f0v0", "enP2p1s0f0v1"]
    for name, link in links.items():
        assert (link["mtu"], link["dhcp4"], link["dhcp6"], link["accept-ra"]) == (9000, False, False, False), name
        assert link["link-local"] == [] and link["optional"] is True
    assert "addresses" not in links["enp1s0f0np0"]
    assert [links[e.interface]["addresses"] for e in plan.of("spark2")] == [[e.cidr] for e in plan.of("spark2")]
    assert "&id" not in yaml.safe_dump(data), "no anchors: this text goes to a file that people read"


def test_node_outside_the_plan_is_named() -> None:
    plan = fabric.plan(SHIPPED)
    for ask in (lambda: plan.of("spark9", 0), lambda: fabric.netplan(plan, "spark9")):
        with pytest.raises(InputError, match=r"node 'spark9' is not in the fabric plan; did you mean 'spark"):
            ask()


def test_as_dict_says_everything_per_node_and_rail() -> None:
    shown = fabric.as_dict(fabric.plan(SHIPPED))
    assert shown["rails"] == ["a", "b"]
    assert [node["name"] for node in shown["nodes"]] == ["spark1", "spark2", "spark3", "spark4"]
    needed = {"rail", "pf", "pci", "vf", "interface", "mac", "address", "prefix", "mtu", "hca"}
    assert all(needed <= end.keys() for node in shown["nodes"] for end in node["endpoints"])
    assert shown["nads"][0] == {
        "name": "rail-a-vf0",
        "rail": "a",
        "vf": 0,
        "device": "enp1s0f0v0",
        "mtu": 9000,
        "subnet": "192.168.100.0/24",
    }


Change = Callable[[dict[str, Any]], None]


def put(*path: str | int, to: object) -> Change:
    def change(data: dict[str, Any]) -> None:
        place: Any = data
        for part in path[:-1]:
            place = place[part]
        place[path[-1]] = to

    return change


REFUSED: list[tuple[str, Change, str, str]] = [
    ("vf-range", put("fabric", "serving_vf", to=2), "fabric.serving_vf", "makes VFs 0 to 1"),
    ("check-vf-range", put("fabric", "check_vf", to=7), "fabric.check_vf", "7 is out of range: vfs_per_rail = 2"),
    ("one-vf", put("fabric", "vfs_per_rail", to=1), "fabric.check_vf", "makes only VF 0"),
    ("same-vf", put("fabric", "check_vf", to=0), "fabric.check_vf", "goes into the serving pods"),
    ("overlap", put("fabric", "rails", 1, "subnet", to="192.168.0.0/16"), "fabric.rails.1.subnet", "of rail 'a'"),
    ("pods", put("fabric", "rails", 0, "subnet", to="10.42.7.0/24"), "fabric.rails.0.subnet", "pod_cidr 10.42.0.0/16"),
    ("services", put("fabric", "rails", 1, "subnet", to="10.43.0.0/24"), "fabric.rails.1.subnet", "service_cidr"),
    ("own-pods", put("cluster", "kubernetes", to={"pod_cidr": "192.168.0.0/17"}), "fabric.rails.0.subnet", "pod_cidr"),
    ("multicast", put("fabric", "rails", 0, "subnet", to="224.0.1.0/24"), "fabric.rails.0.subnet", "is reserved"),
    ("link-local", put("fabric", "rails", 0, "subnet", to="169.254.3.0/24"), "fabric.rails.0.subnet", "is reserved"),
    ("small", put("fabric", "rails", 0, "subnet", to="192.168.7.0/28"), "fabric.rails.0.subnet", "take a /27"),
    ("first-host", put("fabric", "first_host", to=240), "fabric.rails.0.subnet", "first_host 240"),
    ("index", put("nodes", 3, "fabric_index", to=1), "nodes.3.fabric_index", "spark4 and spark1 both have 1"),
    ("node-name", put("nodes", 1, "name", to="spark1"), "nodes.1.name", "both have spark1"),
    ("kube-name", put("nodes", 2, "kubernetes_node", to="spark1"), "nodes.2.kubernetes_node", "both have spark1"),
    (
        "management",
        put("nodes", 1, "management_address", to="192.168.101.50"),
        "nodes.1.management_address",
        "rail 'b'",
    ),
    ("same-pf", put("fabric", "rails", 1, "pf", to="enp1s0f0np0"), "fabric.rails.1.pf", "is rail 'a' too"),
    ("same-pci", put("fabric", "rails", 1, "pci", to="0000:01:00.0"), "fabric.rails.1.pci", "is rail 'a' too"),
    ("same-rail", put("fabric", "rails", 1, "name", to="a"), "fabric.rails.1.name", "is rail 'a' too"),
    ("wrong-pci", put("fabric", "rails", 1, "pci", to="0003:01:00.0"), "fabric.rails.1.pci", "means 0002:01:00.0"),
    ("long-pf", put("fabric", "rails", 0, "pf", to="enp1s0f0longname"), "fabric.rails.0.pf", "no interface name"),
    ("odd-pf", put("fabric", "rails", 0, "pf", to="a b"), "fabric.rails.0.pf", "no interface name"),
    ("is-management", put("fabric", "rails", 0, "pf", to="enP7s7"), "fabric.rails.0.pf", "management interface"),
    (
        "no-subnet",
        put("fabric", "rails", 0, "subnet", to="192.168.100.0/33"),
        "fabric.rails.0.subnet",
        "no IPv4 network",
    ),
    ("host-bits", put("fabric", "rails", 0, "subnet", to="192.168.100.11/24"), "fabric.rails.0.subnet", "host bits"),
    ("big-index", put("nodes", 0, "fabric_index", to=65), "nodes.0.fabric_index", "less than or equal to 64"),
]


@pytest.mark.parametrize(("change", "key", "says"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_refused_by_name(change: Change, key: str, says: str) -> None:
    data = variables()
    change(data)
    with pytest.raises(InputError) as caught:
        fabric.plan(from_vars(data))
    texts = [problem.message for problem in caught.value.problems]
    assert any(text.startswith(f"{key}:") and says in text for text in texts), texts


def test_a_second_rail_on_the_same_link_is_refused_on_a_spark_only() -> None:
    rails = [RAILS[0], {**RAILS[1], "pf": "enp1s0f1np1", "pci": "0000:01:00.1"}]
    data = variables(rails=rails)
    with pytest.raises(InputError, match=r"share one x4 link, so a second rail adds nothing; .*0002:01:00\.0"):
        from_vars(data)
    data["cluster"]["expect_gb10"] = False
    assert len(fabric.plan(from_vars(data)).endpoints) == 16


def test_everything_wrong_is_told_at_once_each_at_its_line(tmp_path: Path) -> None:
    site = tmp_path / "site"
    (site / "group_vars" / "all").mkdir(parents=True)
    shipped = REPO / "inventories" / "gb10"
    for file in ("hosts.yml", "group_vars/all/cluster.yml", "group_vars/all/fabric.yml"):
        text = (shipped / file).read_text()
        text = text.replace("serving_vf: 0", "serving_vf: 4").replace("fabric_index: 3", "fabric_index: 2")
        (site / file).write_text(text)
    with pytest.raises(InputError) as caught:
        load(site)
    places = {str(problem).split(": ")[1]: str(problem) for problem in caught.value.problems}
    assert set(places) == {"fabric.serving_vf", "nodes.2.fabric_index"}
    for file, word, key in (
        ("fabric.yml", "serving_vf:", "fabric.serving_vf"),
        ("hosts.yml", "spark3:", "nodes.2.fabric_index"),
    ):
        (path,) = site.rglob(file)
        line = next(
            number for number, text in enumerate(path.read_text().splitlines(), 1) if re.search(rf"^\s+{word}", text)
        )
        assert f"{file}:{line}:" in places[key]


def test_existing_clusters_networks_are_checked_only_where_given() -> None:
    data = variables()
    data["fabric"]["rails"][0]["subnet"] = "10.42.7.0/24"
    data["cluster"]["kubernetes"] = {"provider": "existing"}
    assert len(fabric.plan(from_vars(data)).endpoints) == 16
    data["cluster"]["kubernetes"]["pod_cidr"] = "10.42.0.0/16"
    with pytest.raises(InputError, match="pod_cidr"):
        from_vars(data)


def test_a_cluster_that_was_changed_in_memory_is_checked_too() -> None:
    changed = SHIPPED.model_copy(update={"fabric": SHIPPED.fabric.model_copy(update={"serving_vf": 9})})
    with pytest.raises(InputError, match=r"fabric\.serving_vf: 9 is out of range"):
        fabric.plan(changed)
