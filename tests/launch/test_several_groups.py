"""The rails of a site that serves several groups: every function that one may get is ready before it comes.

Red before in all: only `serving_vf` and `check_vf` had addresses, MACs and attachments, whatever `serve:` said.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from sparkloom import case
from sparkloom.inputs import addressing, inventory
from sparkloom.inputs.cluster import Cluster
from sparkloom.inputs.inventory import from_vars
from sparkloom.launch import downloads, fabric, fleet_record, groups
from sparkloom.launch.groups import Running
from sparkloom.onnode.host import links
from sparkloom.render import rails_table
from sparkloom.render.manifests import attachments
from sparkloom.site import ansible, nodefiles
from sparkloom.site.checks import networks, rails
from sparkloom.site.tasks import fabric as tasks
from tests.launch.test_fabric import variables
from tests.places import REPO
from tests.plugins.loading import context

RING = ["spark1", "spark2", "spark3"]
OSS = "openai--gpt-oss-120b"


def listed(count: int = 4, **settings: Any) -> Cluster:
    return from_vars({**variables(count, **settings), "serve": [OSS]})


def plain(count: int = 4, **settings: Any) -> Cluster:
    return from_vars(variables(count, **settings))


# --- addresses, attachments, files of the hosts ----------------------------------------------------------------


def test_every_function_that_a_group_may_get_has_an_address_and_an_attachment() -> None:
    cluster = listed(vfs_per_rail=4)
    plan = fabric.plan(cluster)
    assert addressing.functions_of_pods(cluster) == plan.of_pods() == (0, 2, 3)
    assert {e.vf for e in plan.endpoints} == {0, 1, 2, 3}
    assert len({e.address for e in plan.endpoints}) == len({e.mac for e in plan.endpoints}) == 4 * 2 * 4
    names = [item["metadata"]["name"] for item in attachments.definitions(cluster)]
    assert names == [f"rail-{rail}-vf{vf}" for rail in "ab" for vf in range(4)]
    assert set(networks.planned(cluster)) == set(names)
    links = fabric.netplan(plan, "spark2")["network"]["ethernets"]
    assert links["enp1s0f0v3"]["addresses"] == ["192.168.100.60/24"]
    told = nodefiles.every(cluster, plan)["spark2"]
    made = json.loads(told["functions_file"])["rails"][0]["functions"]
    assert [(each["vf"], each["interface"]) for each in made] == [(vf, f"enp1s0f0v{vf}") for vf in range(4)]
    assert {f"enp1s0f0v{vf}" for vf in range(4)} <= {each["interface"] for each in told["links"]}
    assert "net.ipv4.conf.enP2p1s0f0v2.arp_ignore" in told["sysctl"]


def test_what_a_group_is_given_is_what_the_hosts_have() -> None:
    cluster = listed(2, vfs_per_rail=4)
    hosts = {(e.node, e.rail, e.vf): e.cidr for e in fabric.plan(cluster).endpoints}
    pair = ("spark1", "spark2")
    placed = [groups.Placed(n, n, pair, vf, n, 1) for n, vf in zip("abc", (0, 2, 3), strict=True)]
    for group in groups.allocate(placed):
        for node, ends in group.addresses(cluster).items():
            assert ends == {rail: hosts[node, rail, group.vf] for rail in ends}
        seated = groups.seated(cluster, group.vf)
        used = {e.attachment for e in fabric.plan(seated).of("spark1", group.vf)}
        assert used <= set(networks.planned(cluster))
        assert networks.planned(seated) == networks.planned(cluster)


def test_a_group_more_changes_nothing_on_a_host() -> None:
    one, many = (from_vars({**variables(vfs_per_rail=4), "serve": serve}) for serve in ([OSS], [OSS, "a", "b", "c"]))
    assert nodefiles.every(one, fabric.plan(one)) == nodefiles.every(many, fabric.plan(many))


@pytest.mark.parametrize("settings", [{}, {"vfs_per_rail": 4}, {"ring": RING}, {"attach": "pf"}], ids=str)
def test_a_site_with_a_profile_has_what_it_had(settings: dict[str, Any]) -> None:
    count = 3 if "ring" in settings else 4
    plan = fabric.plan(plain(count, **settings))
    assert {e.vf for e in plan.endpoints} == ({0} if "attach" in settings else {0, 1})
    assert fabric.plan(listed(count, **{**settings, "vfs_per_rail": 2})).endpoints == plan.endpoints


def test_a_function_without_an_address_for_every_spark_is_not_made_ready() -> None:
    small = [{**rail, "subnet": f"192.168.{n}.0/26"} for n, rail in enumerate(variables()["fabric"]["rails"])]
    cluster = listed(vfs_per_rail=8, rails=small)
    assert {e.vf for e in fabric.plan(cluster).endpoints} == {0, 1, 2, 3} == {*addressing.functions_of_pods(cluster), 1}


def test_what_hosts_do_among_themselves_goes_by_the_function_that_stays_with_them() -> None:
    """Checks and weights went by the last function of all, which a pod may hold."""
    cluster = listed(vfs_per_rail=4)
    plan = fabric.plan(cluster)
    assert {e.vf for e in plan.at_host()} == {1}
    assert {ping["interface"] for ping in rails.pings(cluster, plan)["spark1"]} == {"enp1s0f0v1", "enP2p1s0f0v1"}
    assert downloads.addresses(cluster, "spark1") == ["192.168.100.27", "192.168.101.27"]


def test_in_a_ring_every_function_has_the_route_to_the_same_function_of_the_next() -> None:
    cluster = listed(3, ring=RING, vfs_per_rail=3)
    known = {a.name: a for a in fabric.attachments(cluster)}
    for vf in (0, 2):
        (end, *_) = fabric.plan(cluster).of("spark1", vf)
        own, gateway = (known[end.attachment].routes[0][0], known[end.attachment].routes[0][1])
        following = {e.rail: e.address for e in fabric.plan(cluster).of("spark2", vf)}
        assert own == f"{following['a2']}/32" and gateway == following["a1"]
    assert known["rail-a1-vf1"].routes == ()


def test_peers_are_kept_from_the_engines_ports_of_every_function() -> None:
    cluster = listed(2, vfs_per_rail=4)
    doors = rails.unanswered(cluster, fabric.plan(cluster), "spark1")["doors"]
    asked = {door["address"] for door in doors if door["by"] == "peer"}
    assert asked == {e.address for e in fabric.plan(cluster).of("spark2") if e.vf != 1}


# --- the list itself --------------------------------------------------------------------------------------------


def test_the_list_is_seen_in_a_folder_and_in_variables(tmp_path: Path) -> None:
    folder = tmp_path / "site"
    (folder / "group_vars").mkdir(parents=True)
    (folder / "hosts.yml").write_text((REPO / "inventories/gb10/hosts.yml").read_text())
    (folder / "group_vars/all").symlink_to(REPO / "inventories/gb10/group_vars/all")
    assert not inventory.load(folder).several
    (folder / "group_vars/all").unlink()
    (folder / "group_vars/all").mkdir()
    for part in ("fabric", "cluster"):
        text = (REPO / f"inventories/gb10/group_vars/all/{part}.yml").read_text()
        more = f"\nserve:\n  - {OSS}\n" if part == "cluster" else ""
        (folder / f"group_vars/all/{part}.yml").write_text(text + more)
    assert inventory.load(folder).several
    task_vars = {
        **{key: variables()[key] for key in ("cluster", "fabric")},
        "groups": {"sparks": ["spark1", "spark2"]}, "hostvars": {"spark1": {}, "spark2": {}},
        "inventory_dir": str(tmp_path),
    }  # fmt: skip
    assert not ansible.cluster(task_vars).several
    assert ansible.cluster({**task_vars, "serve": [OSS]}).several
    assert ansible.inventory({**task_vars, "serve": [OSS]})["serve"] == [OSS]


# --- who hears whom in pods -------------------------------------------------------------------------------------


def on(vf: int, *nodes: str) -> Running:
    return Running("", "", nodes, vf)


def heard(cluster: Cluster, node: str, known: list[Running] | None = None) -> set[tuple[str, str, str]]:
    """(interface, who speaks, who is spoken to) of the pods' table."""
    text = rails_table.pod(cluster, fabric.plan(cluster), node, known or [])
    return set(re.findall(r'"(net\d)" \. ([\d.]+) \. ([\d.]+)', text))


def ends(cluster: Cluster, vf: int, *nodes: str, rail: str = "a") -> list[str]:
    return [e.address for node in nodes for e in fabric.plan(cluster).of(node, vf) if e.rail == rail]


def pairs(cluster: Cluster, node: str, known: list[Running] | None = None) -> Iterator[tuple[int, str, int]]:
    """Of function and function of which Spark, on the first rail."""
    ends = {e.address: e for e in fabric.plan(cluster).endpoints}
    for way, speaks, spoken in heard(cluster, node, known):
        if way == "net1":
            yield ends[spoken].vf, ends[speaks].node, ends[speaks].vf


def test_groups_that_share_a_spark_do_not_hear_each_other() -> None:
    cluster = listed(vfs_per_rail=4)
    for own, _, theirs in pairs(cluster, "spark2"):
        assert theirs in (own, cluster.fabric.check_vf)
    everybody = {"spark1", "spark2", "spark3", "spark4"}
    assert {node for own, node, theirs in pairs(cluster, "spark2") if own == theirs == 2} == everybody


def test_groups_on_other_sparks_do_not_hear_each_other_once_it_is_known_where_they_are() -> None:
    cluster = listed(vfs_per_rail=4)
    known = [on(0, "spark1", "spark2"), on(0, "spark3", "spark4"), on(3, "spark2", "spark3")]
    told = set(pairs(cluster, "spark2", known))
    assert {node for own, node, theirs in told if own == theirs == 0} == {"spark1", "spark2"}
    assert {node for own, node, theirs in told if own == theirs == 3} == {"spark2", "spark3"}
    assert {node for own, node, theirs in told if own == theirs == 2} == {"spark1", "spark2", "spark3", "spark4"}
    for vf in (0, 2, 3):
        assert {node for own, node, theirs in told if own == vf and theirs == 1} == {
            each.name for each in cluster.nodes
        }


def test_while_one_group_takes_the_place_of_another_both_are_heard() -> None:
    cluster = listed()
    both = [on(0, "spark1", "spark2"), on(0, "spark2", "spark3", "spark4")]
    assert len({node for own, node, theirs in pairs(cluster, "spark2", both) if own == theirs}) == 4
    assert len({node for own, node, theirs in pairs(cluster, "spark2", both[:1]) if own == theirs}) == 2


def test_guests_are_heard_by_every_group_and_hosts_by_all_that_is_planned() -> None:
    cluster = listed(2, vfs_per_rail=3, guests=["192.168.100.200"])
    spoken = {ours for _, theirs, ours in heard(cluster, "spark1") if theirs == "192.168.100.200"}
    assert spoken == {*ends(cluster, 0, "spark1"), *ends(cluster, 2, "spark1")}
    text = rails_table.host(cluster, fabric.plan(cluster), "spark1")
    assert all(f'"enp1s0f0v2" . {e}' in text for vf in (0, 1, 2) for e in ends(cluster, vf, "spark1", "spark2"))
    assert re.search(r'iifname { "enP2p1s0f0v0", .*"enp1s0f0v2" } drop', text)


@pytest.mark.parametrize("maker", [plain, listed])
def test_two_of_a_ring_hear_each_other_by_the_one_cable_that_their_pods_get(maker: Any) -> None:
    """Red before with one profile, too: such a pod's net1 is the cable to its partner, which may be the second one."""
    cluster = maker(3, ring=RING)
    launch = case.judge("nvidia--minimax-m2.5-nvfp4--2node", cluster).launch
    for place in launch.topology.places:
        text = rails_table.pod(cluster, fabric.plan(cluster), place.node.name)
        (other,) = (each for each in launch.topology.places if each is not place)
        for number, end in enumerate(place.endpoints):
            (theirs,) = (e.address for e in other.endpoints if e.rail == end.rail)
            assert f'"{fabric.pod_interface(number)}" . {theirs}' in text


def test_three_of_a_ring_hear_each_other_s_own_addresses_by_every_cable() -> None:
    cluster = listed(3, ring=RING, vfs_per_rail=3)
    for vf in (0, 2):
        first = {node: fabric.plan(cluster).of(node, vf)[0].address for node in RING}
        told = heard(cluster, "spark2", [on(vf, *RING)])
        ways = {theirs: way for way, theirs, ours in told if ours == first["spark2"] and theirs in first.values()}
        assert set(ways) == set(first.values())


def test_the_plugin_reads_who_runs_from_the_record(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "fleet.json"
    runs = {"name": "a", "profile": "a", "nodes": ["spark1", "spark2"], "vf": 0}
    file.write_text(json.dumps({"groups": [runs, {**runs, "name": "b", "nodes": ["spark4"], "vf": None}]}))
    monkeypatch.setattr(fleet_record, "path", lambda site: file)
    monkeypatch.setattr(ansible, "cluster", lambda _: listed())
    told = tasks.plan(context(), [{"nodes": ["spark3", "spark4"], "vf": 0}])
    tables = {node: told["nodes"][node]["private"]["pod"] for node in ("spark1", "spark4")}
    known = [on(0, "spark1", "spark2"), on(0, "spark3", "spark4")]
    for node, text in tables.items():
        assert text == rails_table.pod(listed(), fabric.plan(listed()), node, known)
    monkeypatch.setattr(ansible, "cluster", lambda _: plain())
    told = tasks.plan(context())
    assert told["nodes"] == nodefiles.every(plain(), fabric.plan(plain()))


def test_netplan_s_file_of_a_list_goes_back_to_that_of_one_profile_without_a_trace() -> None:
    """What networkd leaves on a function that the file says nothing of any more is taken; a port's is nobody's here."""
    many, one = (nodefiles.every(site, fabric.plan(site))["spark2"] for site in (listed(vfs_per_rail=4), plain()))
    gone = links.left(many["netplan"], one["links"])
    assert gone == [
        {"interface": f"{half}v{vf}", "cidr": f"192.168.{net}.{12 + 16 * vf}/24"}
        for half, net, vf in (
            ("enp1s0f0", 100, 2),
            ("enp1s0f0", 100, 3),
            ("enP2p1s0f0", 101, 2),
            ("enP2p1s0f0", 101, 3),
        )
    ]
    assert links.left(one["netplan"], many["links"]) == links.left("", one["links"]) == []
    assert set(yaml.safe_load(many["netplan"])["network"]["ethernets"]) == {each["interface"] for each in many["links"]}
