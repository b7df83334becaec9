"""A network that is already set up: refused by file with the ways out, taken over by consent, or left beside ours."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from sparkloom.base.finding import Finding, errors
from sparkloom.inputs import inventory
from sparkloom.inputs.cluster import Port
from sparkloom.launch import fabric
from sparkloom.site import nodefiles
from sparkloom.site.foreign import judge
from sparkloom.site.foreign import netplan as netplan_files
from sparkloom.site.foreign.netplan import Definition
from sparkloom.site.foreign.node import Node
from tests.places import REPO
from tests.site.foreign import published
from tests.site.foreign.published import BOTH, CX7, file, netplan, network

ORACLE = REPO / "tests/data/netplan/merged.json"
CLUSTER = inventory.load()
PLAN = fabric.plan(CLUSTER)
ELSEWHERE = CLUSTER.model_copy(
    update={
        "fabric": CLUSTER.fabric.model_copy(
            update={
                "rails": [
                    rail.model_copy(update={"subnet": f"10.77.{number}.0/24"})
                    for number, rail in enumerate(CLUSTER.fabric.rails)
                ]
            }
        )
    }
)
OTHER_CAGE = CLUSTER.model_copy(
    update={
        "fabric": CLUSTER.fabric.model_copy(
            update={
                "rails": [
                    rail.model_copy(update={"ports": {"spark2": Port(pf=pf, pci=pci)}})
                    for rail, pf, pci in zip(
                        CLUSTER.fabric.rails,
                        ("enp1s0f1np1", "enP2p1s0f1np1"),
                        ("0000:01:00.1", "0002:01:00.1"),
                        strict=True,
                    )
                ]
            }
        )
    }
)
OURS = file("/etc/netplan/60-sparkloom.yaml", nodefiles.every(CLUSTER, PLAN)["spark2"]["netplan"])
PROFILE = "[connection]\nid=cx7\ntype=ethernet\ninterface-name={0}\n\n[ipv4]\nmethod=manual\naddress1={1}/24\n"


def judged(*files: dict[str, Any], consent: bool = False, cluster: Any = CLUSTER, **more: Any) -> list[Finding]:
    return judge.judge(cluster, fabric.plan(cluster), "spark2", network(*files, **more), consent)


def changed(*files: dict[str, Any], **more: Any) -> dict[str, Any]:
    return judge.changes(Node("spark2", CLUSTER, PLAN, network(*files, **more)))


def definitions(*files: dict[str, Any]) -> list[Definition]:
    return Node("spark2", CLUSTER, PLAN, {"files": files, "links": {}}).read.definitions


def test_a_fresh_spark_and_our_own_file_are_nobody_elses() -> None:
    assert judged() == []
    manager = file("/lib/netplan/00-network-manager-all.yaml", "network: {version: 2, renderer: NetworkManager}")
    management = netplan("/etc/netplan/50-cloud-init.yaml", enP7s7={"dhcp4": True})
    by_itself = "[connection]\nid=Wired connection 2\ntype=ethernet\nautoconnect-priority=-999\ninterface-name={0}\n"
    wired = file(
        "/run/NetworkManager/system-connections/Wired.nmconnection", by_itself.format(BOTH[0]), "NetworkManager"
    )
    mine = {f"{e.interface}": [e.cidr] for e in PLAN.endpoints if e.node == "spark2"}
    assert judged(manager, management, wired, OURS, live=mine) == []


def test_the_port_is_the_one_that_this_node_s_cable_is_in() -> None:
    """spark2's cable is in the other cage: its port counts there, and the usual one is anybody's."""
    theirs = [netplan(CX7, **{name: {"addresses": ["10.99.0.2/24"]}}) for name in ("enp1s0f1np1", BOTH[0])]
    assert [bool(judged(one, cluster=OTHER_CAGE)) for one in theirs] == [True, False]
    assert [bool(judged(one)) for one in theirs] == [False, True]


REFUSED: list[tuple[str, dict[str, Any], dict[str, list[str]]]] = [
    ("two Sparks, node 2", published.nvidia(11, BOTH), {BOTH[0]: ["192.168.100.11/24"]}),
    ("two Sparks, the other cage", published.nvidia(11), {"enp1s0f1np1": ["192.168.100.11/24"]}),
    ("four at a switch", published.nvidia(2, BOTH), {}),
    ("sparkrun that found NVIDIA's subnets", published.sparkrun("192.168.100.12", "192.168.101.12"), {}),
]


@pytest.mark.parametrize(("case", "theirs", "live"), REFUSED, ids=lambda case: case if isinstance(case, str) else "")
def test_published_files_are_refused_by_name_with_two_ways_out(case: str, theirs: dict, live: dict) -> None:
    found = judged(theirs, live=live)
    assert [finding.rule for finding in errors(found)] == ["rail a", "rail b"], "one per half, the live address no more"
    for finding in found:
        assert finding.message.startswith(f"{CX7} gives ") and "192.168.10" in finding.message
        assert "another subnet: fabric.rails[" in finding.fix and "fabric_adopt=true" in finding.fix
    assert errors(judged(theirs, live=live, cluster=ELSEWHERE)) == [], "the first way out"
    assert errors(judged(theirs, live=live, consent=True)) == [], "the second"


def test_whose_address_it_is_among_ours_is_said() -> None:
    """NVIDIA's node 2 is .11, which is spark1's serving address by default."""
    first, second = judged(published.nvidia(11, BOTH))
    assert "which is what spark1 has on this rail" in first.message and "spark1" in second.message
    assert "spark" not in judged(published.nvidia(1))[0].message


def test_addresses_elsewhere_stay_beside_ours() -> None:
    for theirs in (published.nvidia_ring(2), published.sparkrun("192.168.11.12", "192.168.12.12")):
        found = judged(theirs)
        assert [(f.severity, f.rule) for f in found] == [("warning", "rail a"), ("warning", "rail b")]
        assert "stays beside ours" in found[0].fix
        assert changed(theirs) == {"files": [], "addresses": []}


@pytest.mark.parametrize("theirs", [published.nvidia_dhcp(), published.nvidia_link_local()])
def test_what_our_file_would_silently_switch_off_is_refused(theirs: dict[str, Any]) -> None:
    found = judged(theirs)
    assert errors(found) and CX7 in found[0].message and "another subnet" not in found[0].fix
    assert not errors(judged(theirs, consent=True))


def test_addresses_by_hand_are_found_live() -> None:
    """NVIDIA's option 2: `ip addr add`, in no file."""
    (finding,) = judged(live={"enp1s0f0np0": ["192.168.100.11/24"]})
    assert finding.severity == "error" and "which no file of netplan" in finding.message
    assert changed(live={"enp1s0f0np0": ["192.168.100.11/24"]})["addresses"] == [
        {"interface": "enp1s0f0np0", "cidr": "192.168.100.11/24"}
    ]
    function = PLAN.of("spark2", 0)[0].interface
    assert errors(judged(live={function: ["172.30.0.9/24"]}))
    assert judged(OURS, live={function: ["172.30.0.9/24"]}) == [], (
        "on a function of ours it is drift: the role mends it"
    )
    assert not errors(judged(live={"enp1s0f0np0": ["172.30.0.9/24"]}))


def test_what_our_own_file_gave_by_an_earlier_plan_is_ours() -> None:
    """The cable went to the other cage, or the subnet is another now."""
    old = PLAN.of("spark2", 0)[0]
    rails = [rail.model_copy(update={"pf": rail.pf.replace("f0np0", "f1np1"), "pci": rail.pci[:-1] + "1"})
             for rail in CLUSTER.fabric.rails]  # fmt: skip
    moved = CLUSTER.model_copy(update={"fabric": CLUSTER.fabric.model_copy(update={"rails": rails})})
    live = {old.interface: [old.cidr]}
    assert judged(OURS, live=live, cluster=moved) == judged(OURS, live=live, cluster=ELSEWHERE) == []
    assert errors(judged(live=live, cluster=moved))


def test_the_way_to_the_node_and_a_bridge_are_not_taken_over() -> None:
    for live in ({"enP7s7": ["192.168.100.5/24"]}, {"docker0": ["192.168.100.1/24"]}):
        (finding,) = judged(live=live, consent=True)
        assert finding.severity == "error" and "fabric_adopt" not in finding.fix
        assert changed(live=live)["addresses"] == []


BY_OTHER_NAMES = {
    "mac": netplan(CX7, cx7a={"match": {"macaddress": "4C:BB:47:00:00:10"}, "addresses": ["192.168.100.11/24"]}),
    "glob": netplan(CX7, cx7={"match": {"name": "enp1s0f0*"}, "addresses": ["192.168.100.11/24"]}),
    "driver": netplan(CX7, cx7={"match": {"driver": "mlx5*"}, "dhcp4": True}),
    "set-name": netplan(CX7, a={"match": {"macaddress": "4c:bb:47:00:00:99"}, "set-name": BOTH[0], "dhcp4": True}),
    "bond": file(CX7, "network: {bonds: {bond0: {interfaces: [enp1s0f0np0, enp1s0f1np1], dhcp4: true}}}"),
    "vlan": file(CX7, "network: {vlans: {v5: {id: 5, link: enp1s0f0np0, addresses: [10.5.0.1/24]}}}"),
    "function": netplan(CX7, enp1s0f0v0={"addresses": ["10.10.0.2/24"], "macaddress": "02:00:0a:0a:02:00"}),
    "functions of netplan": netplan(CX7, enp1s0f0np0={"virtual-function-count": 4}),
    "NetworkManager": file("/etc/NetworkManager/system-connections/cx7.nmconnection",
                           PROFILE.format("enp1s0f0np0", "192.168.100.11"), "NetworkManager"),
    "its yaml": netplan("/etc/netplan/90-NM-1.yaml", **{"NM-1": {"renderer": "NetworkManager",
                        "match": {"name": "enp1s0f0np0"}, "dhcp4": True}}),
    "networkd": file("/etc/systemd/network/05-x.network", "[Match]\nName=enp1s0f0*\n[Network]\nDHCP=no\n", "networkd"),
}  # fmt: skip


@pytest.mark.parametrize("case", BY_OTHER_NAMES)
def test_a_port_is_recognised_however_it_is_named(case: str) -> None:
    found = errors(judged(BY_OTHER_NAMES[case]))
    assert found and {finding.rule for finding in found} <= {"rail a", "rail b"}
    assert BY_OTHER_NAMES[case]["path"] in found[0].message
    by_hand = case in ("bond", "vlan")
    assert bool(errors(judged(BY_OTHER_NAMES[case], consent=True))) is by_hand
    assert ("by hand" in found[0].fix) is by_hand


def test_a_match_of_two_things_needs_both_and_another_card_is_left_alone() -> None:
    other = netplan(CX7, x={"match": {"macaddress": "4c:bb:47:00:00:10", "name": "eth*"}, "dhcp4": True})
    assert judged(other) == []
    assert judged(netplan(CX7, enp9s0={"addresses": ["10.1.0.1/24"]})) == []


def test_a_definition_of_the_management_port_too_is_narrowed_by_hand() -> None:
    theirs = netplan("/etc/netplan/50-cloud-init.yaml", all={"match": {"name": "en*"}, "dhcp4": True})
    for consent in (False, True):
        (finding,) = judged(theirs, consent=consent)
        assert finding.severity == "error" and "it defines enP7s7 too, the way to this node" in finding.fix
    assert changed(theirs)["files"] == []


def test_files_merge_by_name_and_a_later_place_replaces_a_file_of_the_same_name() -> None:
    first = netplan("/etc/netplan/10-a.yaml", enp1s0f0np0={"addresses": ["192.168.100.11/24"]})
    second = netplan("/lib/netplan/20-b.yaml", enp1s0f0np0={"addresses": ["192.168.100.77/24"]})
    (definition,) = definitions(second, first)
    assert definition.addresses == (("192.168.100.11/24", first["path"]), ("192.168.100.77/24", second["path"]))
    hidden = netplan("/run/netplan/10-a.yaml", enp9s0={"dhcp4": True})
    assert [d.name for d in definitions(first, hidden)] == ["enp9s0"]


# --- taken over -----------------------------------------------------------------------------------------------


def test_a_file_that_is_all_about_the_rails_goes_with_its_addresses() -> None:
    live = {"enp1s0f1np1": ["192.168.100.11/24"], "enP2p1s0f1np1": ["192.168.101.11/24"]}
    assert changed(published.nvidia(11), live=live) == {
        "files": [{"path": CX7, "content": None}],
        "addresses": [{"interface": name, "cidr": cidr} for name, (cidr,) in live.items()],
    }


def test_what_else_a_file_says_stays() -> None:
    theirs = file(
        "/etc/netplan/50-cloud-init.yaml",
        "network:\n  version: 2\n  renderer: NetworkManager\n  ethernets:\n    enP7s7: {dhcp4: yes, match: {"
        "macaddress: 12:11:22:33:44:55}}\n    enp1s0f0np0: {addresses: [192.168.100.11/24]}\n",
    )
    (change,) = changed(theirs)["files"]
    kept = yaml.load(change["content"], Loader=yaml.BaseLoader)["network"]
    assert kept["ethernets"] == {"enP7s7": {"dhcp4": "yes", "match": {"macaddress": "12:11:22:33:44:55"}}}
    assert kept["renderer"] == "NetworkManager" and "gives it back" in change["content"]


def test_one_id_in_two_files_goes_from_both() -> None:
    first = netplan("/etc/netplan/10-a.yaml", cx={"match": {"name": "enp1s0f0np0"}})
    second = netplan("/etc/netplan/20-b.yaml", cx={"addresses": ["192.168.100.11/24"]})
    assert [entry["path"] for entry in changed(first, second)["files"]] == [first["path"], second["path"]]


def test_a_file_with_a_password_is_changed_by_hand() -> None:
    theirs = {**published.nvidia(11, BOTH), "whole": False}
    assert errors(judged(theirs, consent=True)) and changed(theirs)["files"] == []


def test_our_own_address_in_their_file_is_not_taken_from_our_function() -> None:
    mine = PLAN.of("spark2", 0)[0]
    theirs = netplan(CX7, enp1s0f1np1={"addresses": [mine.cidr]})
    assert changed(theirs, OURS, live={mine.interface: [mine.cidr]})["addresses"] == []


def test_a_file_that_cannot_be_read_is_worth_knowing() -> None:
    (finding,) = judged(file("/etc/netplan/30-broken.yaml", "network: {version: 2"))
    assert finding.severity == "warning" and "/etc/netplan/30-broken.yaml" in finding.message


@pytest.mark.parametrize("case", json.loads(ORACLE.read_text()), ids=lambda case: case["case"])
def test_files_merge_as_the_real_netplan_merges_them(case: dict[str, Any]) -> None:
    found = netplan_files.definitions([{**entry, "kind": "netplan", "whole": True} for entry in case["files"]], [])
    assert {d.name: [cidr for cidr, _ in d.addresses] for d in found} == case["addresses"]
