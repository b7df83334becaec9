"""A healthy Spark has nothing to be told, whatever release of its system it runs and whatever a desktop brings."""

from __future__ import annotations

import pytest

from sparkloom.render.k3s import machines
from sparkloom.site.checks import firewall, host, software
from sparkloom.site.checks.host import Expected
from tests.places import REPO
from tests.site.checks.test_preflight import CLUSTER, IDLE, NODES, PLAN, UFW, Machine, at, machine
from tests.site.foreign import published

# Kernel and driver of DGX OS 7.2.3, 7.4, 7.5 and after an upgrade, as public reports of Sparks show them.
RELEASES = [
    ("6.11.0-1016-nvidia", "580.95.05"),
    ("6.14.0-1013-nvidia", "580.95.05"),
    ("6.14.0-1015-nvidia", "580.126.09"),
    ("6.17.0-1014-nvidia", "580.142"),
    ("6.17.0-1031-nvidia", "580.173.02"),
]
SHIPPED = Expected(driver="580")  # as roles/preflight says
WIFI = "/etc/NetworkManager/system-connections/home.nmconnection"


@pytest.fixture
def sparks() -> dict[str, Machine]:
    return {node: machine(node) for node in NODES}


def test_the_roles_own_default_is_what_is_tried_here() -> None:
    assert 'preflight_driver: "580"' in (REPO / "roles/preflight/defaults/main.yml").read_text()


@pytest.mark.parametrize(("kernel", "driver"), RELEASES)
def test_a_desk_of_healthy_sparks_passes_clean(sparks: dict[str, Machine], kernel: str, driver: str) -> None:
    """GDM draws on the GPU, Docker has its bridge, NetworkManager a profile for the Wi-Fi, ufw is there but off."""
    wifi = published.file(WIFI, "[connection]\nid=home\ntype=wifi\ninterface-name=wlP9s9\n", "NetworkManager")
    for probe in sparks.values():
        probe["system"].update(kernel=kernel)
        probe["driver"].update(version=driver, loaded=driver)
        probe["network"]["files"] = [wifi]
        probe["memory"]["largest"] = [{"pid": 900, "name": "gnome-shell", "gib": 0.4, "in_pod": False}]
    assert host.judge(CLUSTER, sparks, SHIPPED) == []
    assert software.find("kernels", kernel)


def test_a_served_model_and_a_page_cache_full_of_weights_are_health_too(sparks: dict[str, Machine]) -> None:
    for probe in sparks.values():
        probe["gpu"] = {**IDLE, "percent": 96.0, "mhz": 2398.0, "watt": 18.0, "load": {}}
        probe["memory"]["gpu_processes"] = [{"pid": 7, "name": "sglang", "in_pod": True}]
        probe["memory"]["blocks"] = {"free_gib": 3.0, "large_gib": 0.0}
    sparks["spark2"]["memory"]["gpu_processes"] = []
    assert host.judge(CLUSTER, sparks, SHIPPED) == []


def test_a_spark_that_does_not_tell_is_not_called_sick(sparks: dict[str, Machine]) -> None:
    """No CUDA to ask, an old nvidia-smi, a bus that says nothing of lanes."""
    for probe in sparks.values():
        probe["gpu"] = {"load": {}}
        for pci in ("0000:01:00.0", "0002:01:00.0"):
            at(probe, pci).update(pcie="", pcie_most="", pcie_errors={"correctable": {}, "nonfatal": {}, "fatal": {}})
    assert host.judge(CLUSTER, sparks, SHIPPED) == []


def test_a_driver_that_only_one_node_has_is_worth_a_word(sparks: dict[str, Machine]) -> None:
    sparks["spark2"]["driver"].update(version="580.173.02")
    (finding,) = host.judge(CLUSTER, sparks, SHIPPED)
    assert (finding.where, finding.rule, finding.severity) == ("spark2", "driver", "warning")
    assert finding.expected.startswith("580.159.03 as on the others")


def test_a_driver_that_the_site_trusts_is_not_refused(sparks: dict[str, Machine]) -> None:
    for probe in sparks.values():
        probe["driver"].update(version="590.48.01")
    assert {finding.severity for finding in host.judge(CLUSTER, sparks, SHIPPED)} == {"error"}
    assert host.judge(CLUSTER, sparks, Expected(driver="590")) == []
    assert all(set(entry) == {"match", "refuse", "why", "cure", "source"} for entry in software.known("drivers"))


def test_a_gpu_that_is_only_hot_is_not_sent_to_have_its_power_cut(sparks: dict[str, Machine]) -> None:
    load = sparks["spark1"]["gpu"]["load"]
    load.update(mhz=900.0)
    (stuck,) = host.judge(CLUSTER, sparks, SHIPPED)
    assert "power cable" in stuck.fix
    load["state"] = {**IDLE, "held_by": ["temperature, by hardware"]}
    (hot,) = host.judge(CLUSTER, sparks, SHIPPED)
    assert "cool" in hot.fix and "power cable" not in hot.fix and "temperature, by hardware" in hot.message


def test_the_card_firmware_comes_by_its_own_channel(sparks: dict[str, Machine]) -> None:
    at(sparks["spark4"], "0000:01:00.0").update(firmware="28.39.1002")
    (finding,) = host.judge(CLUSTER, sparks, SHIPPED)
    assert "nvidia-spark-mlnx-firmware-manager" in finding.fix and "fwupd" not in finding.fix


def test_half_the_lanes_of_the_second_half_are_named_with_the_firmware_that_mends_it(
    sparks: dict[str, Machine],
) -> None:
    at(sparks["spark4"], "0002:01:00.0").update(pcie="32.0 GT/s PCIe x2")
    (finding,) = host.judge(CLUSTER, sparks, SHIPPED)
    assert "fwupdmgr" in finding.fix and "(of 32.0 GT/s PCIe x16)" in finding.message
    # the other cage of the card is nobody's rail here
    sparks["spark4"] = machine("spark4")
    at(sparks["spark4"], "0002:01:00.1").update(pcie="32.0 GT/s PCIe x2")
    assert host.judge(CLUSTER, sparks, SHIPPED) == []


def told(rules: str) -> list[str]:
    """What a spark1 with these rules is told to let in."""
    every = machines.every(CLUSTER)
    facts = {"ufw": UFW.format(rules), "firewalld": False, "nft": True}
    found = list(firewall.judge(CLUSTER, PLAN, every[0], every, facts))
    return [f"{finding.severity}: {finding.message}" for finding in found]


LET = "Anywhere                   ALLOW IN    {}\n"
ALL = ("192.168.1.0/24", "192.168.100.0/24", "192.168.101.0/24", "10.42.0.0/16", "10.43.0.0/16")


def test_a_firewall_that_lets_the_cluster_in_is_no_trouble() -> None:
    assert told("".join(LET.format(network) for network in ALL)) == []
    assert told("Anywhere                   ALLOW IN    Anywhere\n") == []
    rest = "".join(LET.format(network) for network in ALL if not network.startswith("192.168.10"))
    ports = "".join(
        f"Anywhere on {e.interface:<15} ALLOW IN    Anywhere\n" for e in PLAN.endpoints if e.node == "spark1"
    )
    assert told(rest + ports) == []


def test_one_that_drops_a_part_says_which() -> None:
    (found,) = told("".join(LET.format(network) for network in ALL[:2]))
    assert found == "error: ufw drops what comes from 10.42.0.0/16, 10.43.0.0/16, 192.168.101.0/24"
    (nearly,) = told("6443/tcp                   ALLOW IN    192.168.1.0/24\n")
    assert nearly.startswith("warning: ufw drops"), "rules for single ports may be enough: their writer knows"


def test_a_firewall_that_lets_all_in_by_default_is_none() -> None:
    every = machines.every(CLUSTER)
    facts = {"ufw": UFW.format("").replace("deny (incoming)", "allow (incoming)"), "firewalld": False, "nft": True}
    assert list(firewall.judge(CLUSTER, PLAN, every[0], every, facts)) == []
