"""Preflight: each check says no for its own reason, in one report for all nodes; a good machine passes all."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sparkloom import case
from sparkloom.base.finding import Finding, errors
from sparkloom.inputs import inventory
from sparkloom.launch import fabric
from sparkloom.render.k3s import machines
from sparkloom.site import preflight
from sparkloom.site.checks import clocks, ground, host, ports, software
from sparkloom.site.checks.host import Expected
from sparkloom.site.checks.report import report, screen
from tests.site.foreign import published

CLUSTER = inventory.load()
PLAN = fabric.plan(CLUSTER)
NODES = [node.name for node in CLUSTER.nodes]
STORE = CLUSTER.model_store
ULTRA = "nvidia--nemotron-3-ultra-550b-a55b-nvfp4"
EXPECTED = Expected(store=STORE, weights_gib=dict.fromkeys(NODES[:2], 308.0), driver="580.159")
HALF = published.netplan(published.CX7, enp1s0f0np0={"addresses": ["192.168.100.9/24"]})
# nvidia-smi on a GB10 that draws a desktop and no more; it knows no power limit.
IDLE = {"pstate": "P8", "percent": 0.0, "mhz": 208.0, "most_mhz": 3003.0, "watt": 4.1, "watt_limit": None,
        "celsius": 41.0, "held_by": []}  # fmt: skip
Machine = dict[str, Any]
Fault = Callable[[Machine], Any]


def port(pci: str, name: str, **more: Any) -> dict[str, Any]:
    used = pci.endswith(".0")
    base = {
        "pci": pci, "interface": name, "vendor": "0x15b3", "device": "0x1021", "up": True, "carrier": used,
        "speed": 200_000 if used else -1, "mtu": 1500, "mac": "", "master": "", "total_vfs": 8, "vfs": 0,
        "pcie": "32.0 GT/s PCIe x4", "pcie_most": "32.0 GT/s PCIe x16",
        "pcie_errors": {"correctable": {"RxErr": 3}, "nonfatal": {"UnsupReq": 1}, "fatal": {}},
        "hca": f"roce-{pci}", "firmware": "28.45.4028", "rdma_state": "4: ACTIVE",
    }  # fmt: skip
    return {**base, **more}


def machine(node: str = "spark1") -> Machine:
    """A healthy Spark, as it stands on a desk: a desktop, Docker and NetworkManager run, swap is on."""
    memory = {
        "MemTotal": 121.6, "MemAvailable": 116.0, "MemFree": 110.0, "Cached": 4.0, "Shmem": 0.1, "SwapTotal": 16.0,
        "SwapFree": 16.0, "CmaTotal": 0.0, "CmaFree": 0.0,
    }  # fmt: skip
    return {
        "asked": 1000.0,
        "answered": 1002.0,
        "clock": {"now": 1001.0, "synchronised": True},
        "system": {
            "python": [3, 12, 3],
            "euid": 0,
            "kernel": "6.17.0-1018-nvidia",
            "cmdline": "quiet",
            "release_file": "/etc/dgx-release",
            "release": 'DGX_NAME="DGX Spark"\nDGX_PLATFORM="GX10"',
            "product": "ASUSTeK COMPUTER INC. GX10",
            "name": node,
            "machine": "aarch64",
            "os": "Ubuntu 24.04.4 LTS",
            "families": ["ubuntu", "debian"],
            "systemd": True,
        },
        "cgroups": {"version": 2, "controllers": ["cpuset", "cpu", "io", "memory", "hugetlb", "pids", "rdma", "misc"]},
        "gpus": ["0x2e12"],
        "driver": {"version": "580.159.03", "why": "", "loaded": "580.159.03"},
        "gpu": {**IDLE, "load": {"mhz": 2411.0, "state": {**IDLE, "pstate": "P0", "watt": 62.0, "percent": 98.0}}},
        "memory": {"gib": memory, "resident_gib": 2.0, "largest": [], "gpu_processes": [],
                   "blocks": {"free_gib": 109.0, "large_gib": 101.0}, "cuda_free_gib": 105.2},
        "disks": [
            {"path": "/var/lib", "free_gib": 500.0, "device": 1},
            {"path": STORE, "free_gib": 500.0, "device": 1},
        ],
        "content_gib": {STORE: 0.0},
        "ground": {"wifi": ["wlP9s9"], "forward": "DROP", "containers": [], "session": "", "updates": [],
                   "zone": "Etc/UTC", "persistence": "active", "mstflint": False},
        "firewall": {"ufw": "", "firewalld": False, "nft": True},
        "listening": [],
        "reached": [],
        "ports": [
            port("0000:01:00.0", "enp1s0f0np0"),
            port("0000:01:00.1", "enp1s0f1np1"),
            port("0002:01:00.0", "enP2p1s0f0np0"),
            port("0002:01:00.1", "enP2p1s0f1np1"),
            port("0007:01:00.0", "enP7s7", vendor="0x10ec", device="0x8127"),
        ],
        "network": published.network(live={"enP7s7": [f"192.168.1.1{node[-1]}/24"], "docker0": ["172.17.0.1/16"]}),
    }  # fmt: skip


def gone(probe: Machine, **told: bool) -> None:
    """No ConnectX-7 on the bus, as hot-plug leaves a Spark whose cable is out."""
    probe["ports"] = [port for port in probe["ports"] if port["vendor"] != "0x15b3"]
    probe["hotplug"] = told


def links(probe: Machine) -> Any:
    return probe["network"]["links"]


def at(probe: Machine, pci: str) -> dict[str, Any]:
    return next(p for p in probe["ports"] if p["pci"] == pci)


@pytest.fixture
def probes() -> dict[str, Machine]:
    return {node: machine(node) for node in NODES}


def test_four_good_machines_pass(probes: dict[str, Machine]) -> None:
    assert host.judge(CLUSTER, probes, EXPECTED) == []


@pytest.mark.parametrize(
    ("told", "said", "cure"),
    [
        ({"enabled": True, "cable": False}, "hot-plug took it, no cable seen", "comes back by itself"),
        ({"enabled": True, "cable": True}, "though hot-plug sees a cable", "/sys/bus/pci/rescan"),
        ({"enabled": False, "cable": False}, "no ConnectX-7 on the PCI bus", "out of the wall"),
        ({}, "no ConnectX-7 on the PCI bus", "its maker's matter"),
    ],
)
def test_a_card_that_hot_plug_took_is_told_from_a_dead_one(
    probes: dict[str, Machine], told: dict[str, bool], said: str, cure: str
) -> None:
    gone(probes["spark3"], **told)
    found = host.judge(CLUSTER, probes, EXPECTED)
    assert [(finding.where, finding.rule) for finding in found] == [("spark3", "rail a"), ("spark3", "rail b")]
    assert all(said in finding.message and cure in finding.fix for finding in found), found
    assert all("fabric.yml" not in finding.fix for finding in found), "nothing is wrong with the inventory"


def test_power_that_is_stuck_is_told_from_a_full_load(probes: dict[str, Machine]) -> None:
    """At a clock that is not yet the slow state; a healthy unit meets its cap far above."""
    for node, watt in (("spark2", 98.0), ("spark3", 139.0)):
        load = probes[node]["gpu"]["load"]
        load.update(mhz=1650.0, state={**load["state"], "watt": watt, "held_by": ["power cap"]})
    (finding,) = host.judge(CLUSTER, probes, EXPECTED)
    assert (finding.where, finding.rule, finding.severity) == ("spark2", "gpu", "warning")
    assert "98 W and 1650 MHz, held back by power cap" in finding.message and "out of wall" in finding.fix


UFW = """Status: active
Logging: on (low)
Default: deny (incoming), allow (outgoing), disabled (routed)

To                         Action      From
--                         ------      ----
22/tcp                     ALLOW IN    Anywhere
{}22/tcp (v6)                ALLOW IN    Anywhere (v6)
"""


def taken(port: int, unit: str = "snap.microk8s.daemon-kubelite.service", *, ours: bool = False) -> dict[str, Any]:
    return {"port": port, "pid": 7, "name": "kubelite", "unit": unit, "ours": ours}


FAULTS: list[tuple[str, Fault, str, str]] = [
    ("sudo", lambda p: p["system"].update(euid=1000), "uid 1000", "error"),
    ("machine", lambda p: (p["system"].update(release=""), p.update(gpus=[])), "no /etc/dgx-release", "error"),
    ("machine", lambda p: (p["system"].update(release="DGX_NAME=A100"), p.update(gpus=["0x20b5"])), "A100", "error"),
    ("driver", lambda p: p["driver"].update(version="", why="Driver/library version mismatch"), "mismatch", "error"),
    ("driver", lambda p: p["driver"].update(version="580.95.05"), "580.95.05", "warning"),
    ("driver", lambda p: p["driver"].update(version="580.1590.1"), "580.1590.1", "warning"),
    ("disk", lambda p: p["disks"][0].update(free_gib=3.2), "3.2 GiB", "error"),
    ("kernel", lambda p: p["system"].update(kernel="7.0.0-1019-nvidia"), "7.0.0-1019", "error"),
    ("kernel", lambda p: p["system"].update(kernel="7.0.0-31-generic"), "ENOMEM", "error"),
    ("kernel", lambda p: p["system"].update(kernel="6.99.1"), "nothing is known", "warning"),
    ("kernel", lambda p: p["memory"]["gib"].update(CmaFree=9.3), "9.3 GiB free of memory", "error"),
    ("time sync", lambda p: p["clock"].update(synchronised=False), "not synchronised", "warning"),
    ("clock", lambda p: p["clock"].update(now=1001.0 + 3600), "60.0 minutes ahead of the other nodes", "error"),
    ("clock", lambda p: p["clock"].update(now=1001.0 - 20), "19.0 s behind", "error"),
    ("memory", lambda p: p["memory"]["gib"].update(MemAvailable=55.0), "charged to no process", "warning"),
    ("rail a", lambda p: at(p, "0000:01:00.0").update(interface="eth2"), "0000:01:00.0 is eth2 here", "error"),
    ("rail a", lambda p: at(p, "0000:01:00.0").update(interface=""), "has no network interface", "error"),
    ("rail b", lambda p: at(p, "0002:01:00.0").update(carrier=False), "without carrier", "error"),
    ("rail a", lambda p: at(p, "0000:01:00.0").update(speed=13_000), "13 Gb/s", "error"),
    ("rail a", lambda p: at(p, "0000:01:00.0").update(total_vfs=0), "0 virtual functions", "error"),
    ("rail a", lambda p: at(p, "0000:01:00.0").update(master="br0"), "member of br0", "error"),
    ("rail a", lambda p: at(p, "0000:01:00.0").update(up=False, carrier=False), "switched off", "warning"),
    ("rail b", lambda p: at(p, "0002:01:00.0").update(hca=""), "no RDMA device", "error"),
    ("firmware", lambda p: at(p, "0000:01:00.0").update(firmware="28.39.1002"), "28.39.1002", "warning"),
    ("rail a", lambda p: p["network"].update(files=[HALF]), "40-cx7.yaml", "error"),
    ("driver", lambda p: p["driver"].update(version="590.48.01"), "590.48.01: capturing", "error"),
    ("driver", lambda p: p["driver"].update(version="595.58.03"), "595.58.03: kernels", "warning"),
    ("gpu", lambda p: p["gpu"]["load"].update(mhz=611.0), "611 MHz under a load of our own, 62 W", "error"),
    ("gpu", lambda p: p["gpu"].update(load={}, percent=97.0, mhz=513.0, watt=14.2), "513 MHz at 97 %", "error"),
    ("gpu", lambda p: p["gpu"].update(watt_limit=25.0), "a power limit of 25 W", "warning"),
    ("memory blocks", lambda p: p["memory"]["blocks"].update(large_gib=0.4), "0.4 of 109.0 GiB", "warning"),
    ("pcie", lambda p: at(p, "0002:01:00.0").update(pcie="32.0 GT/s PCIe x2"), "enP2p1s0f0np0 has 32.0", "warning"),
    ("pcie", lambda p: at(p, "0000:01:00.0").update(pcie="16.0 GT/s PCIe x4"), "16.0 GT/s PCIe x4", "warning"),
    ("pcie", lambda p: at(p, "0000:01:00.0")["pcie_errors"].update(fatal={"DLP": 2}), "2 fatal DLP", "warning"),
    ("pcie", lambda p: at(p, "0000:01:00.0")["pcie_errors"].update(correctable={"RxErr": 53051}), "53051", "warning"),
    ("management", lambda p: links(p)["enP7s7"].update(addresses=["192.168.1.57/24"]), "has 192.168.1.57", "error"),
    ("management", lambda p: links(p).update(wlP9s9=links(p).pop("enP7s7")), "is on wlP9s9", "error"),
    ("firewall", lambda p: p["firewall"].update(ufw=UFW.format("")), "192.168.100.0/24", "error"),
    ("firewall", lambda p: p["firewall"].update(firewalld=True), "firewalld runs", "error"),
    ("firewall", lambda p: p["firewall"].update(nft=False), "no nft", "error"),
    ("ports", lambda p: p["listening"].append(taken(10250)), "10250 is held by kubelite (pid 7, snap", "error"),
    ("ports", lambda p: p["listening"].append(taken(443, "nginx.service")), "443 is held by kubelite (pid 7", "error"),
    ("cgroups", lambda p: p["cgroups"].update(version=1), "version 1", "error"),
    ("wifi", lambda p: p["ground"].update(wifi=["enP7s7"]), "enP7s7, which manages this node, is Wi-Fi", "warning"),
    ("docker", lambda p: p["ground"].update(containers=["vllm"]), "Docker's vllm holds memory of the GPU", "warning"),
    ("desktop", lambda p: p["ground"].update(session="ada"), "ada is logged in at the desktop", "warning"),
    ("updates", lambda p: p["ground"].update(updates=["nvidia-driver-580-open"]), "nvidia-driver-580-open", "warning"),
    ("time zone", lambda p: p["ground"].update(zone="Asia/Tokyo"), "Asia/Tokyo", "warning"),
    ("swap", lambda p: p["memory"]["gib"].update(SwapFree=9.5), "6.5 GiB of swap are in use", "warning"),
    ("persistence", lambda p: p["ground"].update(persistence="inactive"), "persistenced is inactive", "warning"),
    ("mstflint", lambda p: p["ground"].update(mstflint=True), "dgx-dashboard-admin runs mstflint", "warning"),
    ("system", lambda p: p["system"].update(families=["fedora"], os="Fedora 43"), "Fedora 43", "warning"),
]  # fmt: skip


@pytest.mark.parametrize(("check", "fault", "found", "severity"), FAULTS)
def test_one_fault_gives_one_finding(
    probes: dict[str, Machine], check: str, fault: Fault, found: str, severity: str
) -> None:
    fault(probes["spark3"])
    (finding,) = host.judge(CLUSTER, probes, EXPECTED)
    assert (finding.where, finding.rule, finding.severity) == ("spark3", check, severity)
    assert found in finding.message and finding.expected and finding.fix
    assert finding.rule in host.names(CLUSTER)


def test_every_row_of_the_ground_has_its_fault() -> None:
    assert set(ground.names()) <= {check for check, *_ in FAULTS}
    theirs = CLUSTER.kubernetes.model_copy(update={"provider": "existing"})
    elsewhere = CLUSTER.model_copy(update={"kubernetes": theirs})
    (finding, *others) = ground.judge(elsewhere, {machines.every(elsewhere)[0]: machine()})
    assert (finding.rule, others) == ("docker", []) and "FORWARD policy is DROP" in finding.message
    assert '{"iptables": false}' in finding.fix


def hundred(port: dict[str, Any]) -> None:
    port.update(speed=100_000)


def test_a_healthy_fabric_of_100_gbit_passes_where_the_site_says_so(probes: dict[str, Machine]) -> None:
    for probe in probes.values():
        hundred(at(probe, "0000:01:00.0"))
        hundred(at(probe, "0002:01:00.0"))
    findings = host.judge(CLUSTER, probes, EXPECTED)
    assert len(errors(findings)) == 8
    assert all("fabric.rail_gbit: 100 in fabric.yml" in finding.fix for finding in findings)
    narrow = CLUSTER.model_copy(update={"fabric": CLUSTER.fabric.model_copy(update={"rail_gbit": 100})})
    assert host.judge(narrow, probes, EXPECTED) == []
    at(probes["spark2"], "0000:01:00.0").update(speed=200_000)
    (faster,) = host.judge(narrow, probes, EXPECTED)
    assert faster.severity == "warning" and "fabric.rail_gbit: 200" in faster.fix


def test_a_stuck_card_is_not_called_a_slower_fabric(probes: dict[str, Machine]) -> None:
    at(probes["spark1"], "0000:01:00.0").update(speed=13_000)
    (finding,) = host.judge(CLUSTER, probes, EXPECTED)
    assert "rail_gbit" not in finding.fix and "powering both ends off" in finding.fix


def test_a_kernel_with_its_cure_or_that_the_site_allows_passes(probes: dict[str, Machine]) -> None:
    probes["spark1"]["system"].update(kernel="7.0.0-1019-nvidia", cmdline="quiet kho=off")
    probes["spark2"]["system"].update(kernel="7.0.0-1019-nvidia")
    allowed = Expected(store=STORE, kernels_allowed=("7.0.0-1019-nvidia",))
    assert host.judge(CLUSTER, probes, allowed) == []
    assert [finding.where for finding in host.judge(CLUSTER, probes, EXPECTED)] == ["spark2"]


def test_every_listed_kernel_has_a_source_and_a_verdict() -> None:
    for entry in software.known("kernels"):
        assert set(entry) >= {"match", "works", "source"} and ("why" in entry) is not entry["works"]
    found = software.find("kernels", "7.0.0-30-generic")
    assert found and found["works"], "a longer match stands before a shorter one"


def test_any_makers_machine_is_one_by_its_release_file_or_its_gpu(probes: dict[str, Machine]) -> None:
    probes["spark1"].update(gpus=[])
    probes["spark2"]["system"].update(release="")
    assert host.judge(CLUSTER, probes, EXPECTED) == []


def test_not_a_gb10_is_fine_when_the_site_says_so(probes: dict[str, Machine]) -> None:
    plain = CLUSTER.model_copy(update={"expect_gb10": False})
    probes["spark1"]["system"].update(release="")
    probes["spark1"].update(gpus=[], driver={"version": "", "why": "no nvidia-smi", "loaded": ""})
    for found in probes["spark1"]["ports"]:
        found.update(hca="")
    assert host.judge(plain, probes, EXPECTED) == []


def test_names_are_found_by_pci_and_the_true_one_is_told(probes: dict[str, Machine]) -> None:
    at(probes["spark2"], "0000:01:00.0").update(interface="enp1s0f0")
    at(probes["spark2"], "0002:01:00.0").update(interface="enP2p1s0f0")
    findings = host.judge(CLUSTER, probes, EXPECTED)
    assert [finding.fix for finding in findings] == [
        "pf: enp1s0f0 in fabric.rails[a] in fabric.yml",
        "pf: enP2p1s0f0 in fabric.rails[b] in fabric.yml",
    ]


def test_a_card_elsewhere_is_shown_as_its_twins(probes: dict[str, Machine]) -> None:
    for found in probes["spark2"]["ports"]:
        found["pci"] = found["pci"].replace(":01:", ":05:")
        found["interface"] = found["interface"].replace("s0", "s5")
    findings = host.judge(CLUSTER, probes, EXPECTED)
    assert len(findings) == 2
    assert "enp1s5f0np0 0000:05:00.0 + enP2p1s5f0np0 0002:05:00.0" in findings[0].message


def test_a_cable_in_the_other_port_is_recognised(probes: dict[str, Machine]) -> None:
    for found in probes["spark4"]["ports"]:
        found.update(carrier=found["pci"].endswith(".1"))
    findings = host.judge(CLUSTER, probes, EXPECTED)
    assert ["pf: enp1s0f1np1" in findings[0].fix, "pf: enP2p1s0f1np1" in findings[1].fix] == [True, True]


def test_a_ring_is_hinted_at_where_all_links_are_up(probes: dict[str, Machine]) -> None:
    """Red before: preflight passed on a ring of three or four, and the fabric then blamed cables that are whole."""
    for probe in probes.values():
        at(probe, "0000:01:00.1").update(carrier=True, speed=200_000)
        at(probe, "0002:01:00.1").update(carrier=True, speed=200_000)
    findings = host.judge(CLUSTER, probes, EXPECTED)
    assert [(f.where, f.rule, f.severity) for f in findings] == [(node, "rail a", "warning") for node in NODES]
    assert "link in both cages" in findings[0].message and "fabric discover" in findings[0].fix
    pair = CLUSTER.model_copy(update={"nodes": CLUSTER.nodes[:2]})
    assert host.judge(pair, {node: probes[node] for node in NODES[:2]}, EXPECTED) == [], "half of a ring, served as one"


def test_twins_are_one_cage_in_two_domains(probes: dict[str, Machine]) -> None:
    cages = ports.twins(ports.cards(probes["spark1"]))
    assert [[p["pci"] for p in cage] for cage in cages] == [
        ["0000:01:00.0", "0002:01:00.0"],
        ["0000:01:00.1", "0002:01:00.1"],
    ]


def test_weights_count_on_the_nodes_that_hold_them_less_what_is_there(probes: dict[str, Machine]) -> None:
    for probe in probes.values():
        probe["disks"] = [{**disk, "free_gib": 200.0} for disk in probe["disks"]]
    probes["spark2"]["content_gib"][STORE] = 300.0
    (finding,) = host.judge(CLUSTER, probes, EXPECTED)
    assert finding.where == "spark1" and finding.expected.startswith(
        "320 GiB: 12 GiB for K3s, logs and spare and 308 GiB of weights"
    )


def test_two_disks_are_counted_apart(probes: dict[str, Machine]) -> None:
    probes["spark1"]["disks"][0].update(free_gib=45.0)
    probes["spark1"]["disks"][1].update(free_gib=310.0, device=2)
    assert host.judge(CLUSTER, probes, EXPECTED) == []
    probes["spark1"]["disks"][1].update(free_gib=300.0)
    (finding,) = host.judge(CLUSTER, probes, EXPECTED)
    assert STORE in finding.message and "/var/lib and" not in finding.message


def test_the_plan_says_how_much_the_weights_are() -> None:
    found = preflight.weights(case.judge(ULTRA, CLUSTER).launch, CLUSTER)
    assert set(found) == set(NODES) and all(300 < gib < 340 for gib in found.values())


def test_memory_of_a_served_model_is_no_news_but_an_engine_outside_is(probes: dict[str, Machine]) -> None:
    for node in NODES[:2]:
        probes[node]["memory"]["gib"]["MemAvailable"] = 20.0
        probes[node]["memory"]["gpu_processes"] = [{"pid": 7, "name": "sglang", "in_pod": node == "spark1"}]
    (finding,) = host.judge(CLUSTER, probes, EXPECTED)
    assert finding.where == "spark2" and "sglang (pid 7)" in finding.message


def test_slow_answers_prove_nothing_about_a_clock(probes: dict[str, Machine]) -> None:
    probes["spark1"].update(asked=900.0, answered=1100.0)
    probes["spark1"]["clock"]["now"] = 1080.0
    assert host.judge(CLUSTER, probes, EXPECTED) == []


def test_all_nodes_off_together_blames_this_machine(probes: dict[str, Machine]) -> None:
    for probe in probes.values():
        probe["clock"]["now"] += 7200
    (finding,) = host.judge(CLUSTER, probes, EXPECTED)
    assert (finding.where, finding.severity) == ("controller", "warning") and "2.0 hours ahead" in finding.message


def test_spelled() -> None:
    assert [clocks.spelled(s) for s in (4, 200, 9000, 4e5)] == ["4.0 s", "3.3 minutes", "2.5 hours", "4.6 days"]


@pytest.mark.parametrize(
    ("probe", "check"),
    [
        ({"unreachable": True, "msg": "Failed to connect to the host via ssh"}, "connection"),
        ({"msg": "deserialization failed. Error response from daemon: No such container: x"}, "connection"),
        ({"msg": "Missing sudo password"}, "sudo"),
        ({"msg": "/bin/sh: 1: /usr/bin/python3: not found"}, "python"),
        ({"msg": "the node gave no answer, exit 1; it said: Python 3.9.18 at /usr/bin/python3 is too old"}, "python"),
        ({}, "connection"),
    ],
)
def test_a_node_that_cannot_be_read_is_a_finding(probes: dict[str, Machine], probe: Machine, check: str) -> None:
    probes["spark2"] = probe
    (finding,) = host.judge(CLUSTER, probes, EXPECTED)
    assert (finding.where, finding.rule) == ("spark2", check)


def test_a_limited_run_judges_what_it_looked_at(probes: dict[str, Machine]) -> None:
    assert host.judge(CLUSTER, {"spark2": probes["spark2"]}, EXPECTED, only=["spark2"]) == []


def test_the_report_has_one_table_and_keeps_warnings_apart(probes: dict[str, Machine]) -> None:
    probes["spark1"] = {"unreachable": True, "msg": "no route"}
    probes["spark2"]["driver"].update(version="580.95.05")
    for node in NODES[2:]:
        at(probes[node], "0000:01:00.0").update(speed=13_000)
    findings = host.judge(CLUSTER, probes, EXPECTED)
    text = report(NODES, host.names(CLUSTER), findings)
    table, mended, known = text.split("\n\n")
    lines = {line.split("  ")[0]: line.split()[-4:] for line in table.splitlines()[2:]}
    assert lines["connection"] == ["FAIL", "ok", "ok", "ok"]
    assert lines["driver"] == ["-", "warn", "ok", "ok"]
    assert lines["rail a"] == ["-", "ok", "FAIL", "FAIL"]
    assert "3 on 3 nodes" in mended and "FAIL  spark3,spark4  rail a: found enp1s0f0np0 at 13 Gb/s" in mended
    assert "warn  spark2  driver" in known and "warn" not in mended
    assert report(NODES, host.names(CLUSTER), []) == f"all {len(host.names(CLUSTER))} checks hold on 4 nodes"


FIRST_WEEK: list[Fault] = [
    lambda p: p["system"].update(name="spark-1f2e"),
    lambda p: p["listening"].append(taken(443, "nginx.service")),
    lambda p: p["disks"][0].update(free_gib=3.2),
    lambda p: p["clock"].update(now=1001.0 + 3600),
    lambda p: p["ground"].update(wifi=["enP7s7"]),
    lambda p: p["ground"].update(containers=["vllm"]),
    lambda p: p["ground"].update(session="ada"),
    lambda p: p["ground"].update(updates=["nvidia-driver-580-open", "linux-image-6.17.0-1031-nvidia"]),
    lambda p: p["memory"]["gib"].update(SwapFree=9.5),
    lambda p: p["ground"].update(persistence="inactive"),
]
TOLD = ("ports", "disk", "clock", "wifi", "docker", "desktop", "updates", "swap", "persistence", "hostname")


def test_ten_faults_at_once_stand_on_one_screen_the_worst_first(probes: dict[str, Machine]) -> None:
    """Red before: a grid of 30 lines, then sentences of 200 letters, of which a window of 80x24 kept the end."""
    for number, fault in enumerate(FIRST_WEEK):
        for node in NODES if number == 0 else NODES[2:3]:
            fault(probes[node])
    probes["spark1"] = {"msg": "the node gave no answer, exit 1; it said: Python 3.9.18 at /usr/bin/python3 is too old"}
    findings = host.judge(CLUSTER, probes, EXPECTED)
    lines = screen(NODES, host.names(CLUSTER), findings).splitlines()
    assert len(lines) <= 22 and max(map(len, lines)) < 80, lines
    faults = lines[1:21:2]
    assert faults[0].startswith("FAIL  spark1  python: Python 3.9.18 at /usr/bin/python3 is too old")
    assert [line.split("  ")[0] for line in faults] == ["FAIL"] * 4 + ["warn"] * 6
    assert all(line.startswith("      do: ") for line in lines[2:21:2])
    assert {line.split("  ")[2].partition(":")[0] for line in faults} <= {"python", *TOLD}
    assert lines[21] == "and 1 more" and {one.rule for one in findings} == {"python", *TOLD}


def test_nodes_with_the_same_trouble_share_its_place_on_the_screen(probes: dict[str, Machine]) -> None:
    """Red before: four Sparks without their addresses took four of the ten places, and both rails had none."""
    for node in NODES:
        links(probes[node])["enP7s7"].update(addresses=["10.0.0.7/24"])
    findings = host.judge(CLUSTER, probes, EXPECTED)
    head, *lines = screen(NODES, host.names(CLUSTER), findings).splitlines()
    assert "4 to mend" in head and [line[:28] for line in lines[::2]] == ["FAIL  all  management (1 of "]


def test_the_grid_of_eight_sparks_is_no_wider_than_a_window(probes: dict[str, Machine]) -> None:
    eight = [f"spark-1f2{number}" for number in range(8)]
    findings = [Finding(node, "memory blocks", "x", "y", "z") for node in eight[3:]]
    text = report(eight, host.names(CLUSTER), findings)
    lines = text.split("\n\n")[0].splitlines()
    assert max(map(len, lines)) <= 80 and all(node in text for node in eight)
    assert [line.split()[-1] for line in lines if line.startswith("memory blocks")] == ["FAIL", "FAIL"]
    assert not any(line.startswith("kernel") for line in lines), "what holds everywhere has no line"


# What a role tells of its variables.
SETTINGS: dict[str, Any] = {
    "profile": "", "disk_path": "/var/lib", "free_gib": 12, "image_gib": 28, "server_free_gib": 10,
    "count_weights": True, "driver": "580.159", "clock_seconds": 5, "kernels_allowed": [], "memory_gib": 100.7,
    "cuda": True, "gpu_mhz": 1000, "cgroup_v1": False, "k3s_adopt": False, "adopt": False,
    "endpoint_ports": [80, 443],
}  # fmt: skip


def test_facts_are_kept_for_every_node(probes: dict[str, Machine], tmp_path: Path) -> None:
    settings = {**SETTINGS, "profile": ULTRA}
    asked = preflight.reads(CLUSTER, settings)
    assert set(asked) == set(NODES) and asked["spark1"]["paths"] == ["/var/lib", STORE]
    folder, layers = asked["spark1"]["folders"]
    for probe in probes.values():
        probe["content_gib"] = {folder: 0.0, layers: 0.0}
    judged = preflight.judge(CLUSTER, probes, settings)
    assert not judged.failed and "firmware of the rails' ports: 28.45.4028" in judged.report
    kept = json.loads(Path(judged.keep(tmp_path / "build")).read_text())
    assert all("text" not in file for node in kept["nodes"].values() for file in node["network"]["files"])
    assert set(kept["nodes"]) == set(NODES) and kept["site"] == "gb10"
    assert [row["found"][:6] for row in kept["rows"]] == ["rank 0"]  # a privileged pod beside the server
    spoiled = copy.deepcopy(probes)
    spoiled["spark1"]["disks"] = [{**disk, "free_gib": 320.0} for disk in spoiled["spark1"]["disks"]]
    assert [finding.rule for finding in errors(preflight.judge(CLUSTER, spoiled, settings).findings)] == ["disk"]
    (short,) = errors(preflight.judge(CLUSTER, spoiled, settings).findings)
    assert "12 GiB for K3s, logs and spare and 28 GiB of images" in short.expected, "the sum, before the download"
    spoiled["spark1"]["content_gib"] = {folder: 30.0, layers: 0.0}
    assert preflight.judge(CLUSTER, spoiled, settings).failed
    spoiled["spark1"]["content_gib"] = {folder: 30.0, layers: 9.5}
    assert not preflight.judge(CLUSTER, spoiled, settings).failed, "the image is there already"


def test_a_finding_for_a_check_without_a_place_in_the_table_would_be_lost() -> None:
    findings = [Finding("spark1", "rail b", "x", "y", "z")]
    assert "FAIL" in report(["spark1"], host.names(CLUSTER), findings).split("\n\n")[0]
