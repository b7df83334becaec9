"""A server of K3s beside the Sparks is looked at too: for what K3s needs, and for nothing that only a Spark has."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sparkloom.base.errors import InputError
from sparkloom.base.finding import Finding
from sparkloom.inputs import inventory
from sparkloom.inputs.cluster import Cluster, Server
from sparkloom.render.k3s import machines
from sparkloom.site import preflight
from sparkloom.site.checks import host, management
from sparkloom.site.checks.host import Expected
from sparkloom.site.checks.report import report
from tests.k3s_sites import site
from tests.site.checks.test_preflight import Machine, machine, taken
from tests.site.foreign import published

MINE = "http.service"
SETTINGS = {
    "profile": "", "disk_path": "/var/lib", "free_gib": 12, "image_gib": 28, "server_free_gib": 10,
    "count_weights": False, "driver": "580", "clock_seconds": 5, "kernels_allowed": [], "memory_gib": 100.7,
    "cuda": True, "gpu_mhz": 1000, "cgroup_v1": False, "k3s_adopt": False, "adopt": False, "endpoint_ports": [80, 443],
}  # fmt: skip


def where(*servers: str, **kubernetes: Any) -> Cluster:
    """Two Sparks with servers beside them, all on ports that are called enP7s7 (a box: eth0)."""
    cluster = site(list(servers or ("box1",)), 2, **kubernetes)
    known = [s.model_copy(update={"management_interface": "eth0"} if "box" in s.name else {}) for s in cluster.servers]
    return cluster.model_copy(update={"servers": known})


def box(cluster: Cluster, name: str = "box1") -> Machine:
    """A small PC with Debian: no GPU, no ConnectX-7, no release file, a kernel of its own."""
    found = machine("spark1")
    address = next(server.management_address for server in cluster.servers if server.name == name)
    found["system"].update(
        name=name, machine="x86_64", kernel="6.1.0-31-amd64", release="", product="Intel NUC", os="Debian 12",
        families=["debian"],
    )  # fmt: skip
    found.update(gpus=[], driver={"version": "", "why": "no nvidia-smi", "loaded": ""}, gpu={"load": {}}, ports=[])
    found["memory"]["gib"] = dict.fromkeys(found["memory"]["gib"], 0.0) | {"MemTotal": 7.7, "MemAvailable": 6.9}
    found["memory"].update(blocks={"free_gib": 5.0, "large_gib": 1.0}, cuda_free_gib=None)
    found["disks"] = [{"path": "/var/lib", "free_gib": 60.0, "device": 1}]
    found["content_gib"] = {}
    found["network"]["links"] = {"eth0": {"macs": [], "driver": "", "port": True, "addresses": [f"{address}/16"]}}
    return found


def probes(cluster: Cluster) -> dict[str, Machine]:
    every = machines.every(cluster)
    found = {m.name: machine(m.name) if m.spark else box(cluster, m.name) for m in every}
    for m in every:
        if m.spark:
            found[m.name]["network"] = published.network(live={"enP7s7": [f"{m.address}/16"]})
        found[m.name]["reached"] = [
            {"name": other.name, "address": other.address, "answers": True} for other in management.reaches(m, every)
        ]
    return found


def judged(cluster: Cluster, read: dict[str, Machine], **changes: Any) -> list[Finding]:
    return host.judge(cluster, read, Expected(driver="580", **changes))


@pytest.mark.parametrize("servers", [("box1",), ("spark1",), ("box1", "box2", "box3"), ("spark1", "spark2", "box1")])
def test_a_good_site_passes_wherever_its_servers_stand(servers: tuple[str, ...]) -> None:
    cluster = where(*servers)
    assert judged(cluster, probes(cluster)) == []


FAULTS: list[tuple[str, Callable[[Machine], Any], str, str]] = [
    ("sudo", lambda p: p["system"].update(euid=1000), "uid 1000", "error"),
    ("system", lambda p: p["system"].update(machine="armv7l"), "armv7l", "error"),
    ("system", lambda p: p["system"].update(kernel="5.4.0-216-generic"), "kernel 5.4", "error"),
    ("system", lambda p: p["system"].update(systemd=False), "no systemd", "error"),
    ("system", lambda p: p["system"].update(os="Alpine Linux v3.22", families=["alpine"]), "Alpine", "warning"),
    ("cgroups", lambda p: p["cgroups"].update(version=1), "version 1", "error"),
    ("cgroups", lambda p: p["cgroups"]["controllers"].remove("memory"), "no memory", "error"),
    ("ports", lambda p: p["listening"].append(taken(6443, MINE)), "6443 is held by kubelite (pid 7, http.s", "error"),
    ("ports", lambda p: p["listening"].append(taken(2379, "")), "2379 is held by kubelite (pid 7)", "error"),
    ("disk", lambda p: p["disks"][0].update(free_gib=2.5), "2.5 GiB free under /var/lib", "error"),
    ("memory", lambda p: p["memory"]["gib"].update(MemTotal=0.9), "0.9 GiB", "warning"),
    ("swap", lambda p: p["memory"]["gib"].update(SwapTotal=2.0), "2.0 GiB of swap", "warning"),
    ("clock", lambda p: p["clock"].update(now=1001.0 + 600), "10.0 minutes ahead", "error"),
    ("time sync", lambda p: p["clock"].update(synchronised=False), "not synchronised", "warning"),
    ("management", lambda p: p["network"]["links"]["eth0"].update(addresses=["10.1.1.77/16"]), "10.1.1.77", "error"),
    ("firewall", lambda p: p["firewall"].update(firewalld=True), "firewalld", "error"),
]  # fmt: skip


@pytest.mark.parametrize(("check", "fault", "found", "severity"), FAULTS)
def test_one_fault_of_a_box_gives_one_finding(
    check: str, fault: Callable[[Machine], Any], found: str, severity: str
) -> None:
    cluster = where()
    read = probes(cluster)
    fault(read["box1"])
    (finding,) = judged(cluster, read)
    assert (finding.where, finding.rule, finding.severity) == ("box1", check, severity)
    assert found in finding.message and finding.expected and finding.fix
    assert finding.rule in host.names(cluster) and finding.rule not in host.passed_over(cluster)["box1"]


def test_k3s_that_runs_already_holds_its_own_ports() -> None:
    cluster = where()
    read = probes(cluster)
    read["box1"]["listening"] = [taken(port, "k3s.service", ours=True) for port in (6443, 2379, 2380, 10250)]
    read["spark1"]["listening"] = [taken(10250, "k3s-agent.service", ours=True)]
    assert judged(cluster, read) == []


def test_a_k3s_of_somebody_elses_is_told_once_with_both_ways_out() -> None:
    """It was found when the cluster was made, after nodes and rails had been changed."""
    cluster = where()
    read = probes(cluster)
    read["box1"]["listening"] = [taken(port, "k3s.service") for port in (6443, 2379, 2380, 10250)]
    (finding,) = judged(cluster, read)
    assert (finding.where, finding.rule) == ("box1", "ports") and "something else installed" in finding.message
    assert "k3s_adopt: true" in finding.fix and "provider: existing" in finding.fix
    assert judged(cluster, read, k3s_adopt=True) == []


def test_a_site_that_lets_its_kubelets_run_with_the_old_control_groups_says_so() -> None:
    cluster = where()
    read = probes(cluster)
    for probe in read.values():
        probe["cgroups"]["version"] = 1
    assert {finding.where for finding in judged(cluster, read)} == {"box1", "spark1", "spark2"}
    assert judged(cluster, read, cgroup_v1=True) == []


def lost(read: dict[str, Machine], *pairs: tuple[str, str]) -> None:
    for source, target in pairs:
        for row in read[source]["reached"]:
            row["answers"] = row["answers"] and row["name"] != target


def test_a_box_that_nobody_reaches_is_named_once_and_what_it_cannot_reach_by_name() -> None:
    cluster = where()
    read = probes(cluster)
    assert [row["name"] for row in read["spark1"]["reached"]] == ["box1"]  # Sparks have their rails between them
    lost(read, ("spark1", "box1"), ("spark2", "box1"))
    (finding,) = judged(cluster, read)
    assert (finding.where, finding.rule) == ("box1", "reach")
    assert finding.message == "no answer at 10.1.1.1 to spark1, spark2"
    read = probes(cluster)
    lost(read, ("box1", "spark2"))
    (finding,) = judged(cluster, read)
    assert finding.where == "spark2" and "to box1" in finding.message


def test_one_way_that_is_closed_is_told_where_it_begins() -> None:
    cluster = where("box1", "box2", "box3")
    read = probes(cluster)
    lost(read, ("spark1", "box2"))
    (finding,) = judged(cluster, read)
    assert finding.where == "spark1" and finding.message == "no answer from box2 at 10.1.1.2"


def test_two_machines_of_one_name_are_told_apart() -> None:
    cluster = where()
    read = probes(cluster)
    read["box1"]["system"]["name"] = read["spark2"]["system"]["name"] = "ubuntu"
    found = judged(cluster, read)
    assert [(f.where, f.rule, f.severity) for f in found] == [
        ("spark2", "hostname", "warning"),
        ("box1", "hostname", "warning"),
    ]


def test_an_unreachable_box_is_a_finding_and_its_silence_is_nobody_elses() -> None:
    cluster = where()
    read = probes(cluster)
    read["box1"] = {"unreachable": True, "msg": "Failed to connect to the host via ssh"}
    lost(read, ("spark1", "box1"), ("spark2", "box1"))
    (finding,) = judged(cluster, read)
    assert (finding.where, finding.rule) == ("box1", "connection")


def test_a_cluster_that_is_there_already_keeps_its_own_servers() -> None:
    cluster = where(provider="existing")
    assert [machine.name for machine in machines.every(cluster)] == ["spark1", "spark2"]
    assert set(preflight.reads(cluster, SETTINGS)) == {"spark1", "spark2"}
    assert not {"ports", "reach", "cgroups"} & set(host.names(cluster))


def test_what_is_read_of_each_kind() -> None:
    read = preflight.reads(where(), SETTINGS)
    assert read["box1"] == {
        "paths": ["/var/lib"], "folders": [], "listens": [6443, 2379, 2380, 10250, 5001], "cuda": False,
        "reach": [{"name": "spark1", "address": "10.1.0.1"}, {"name": "spark2", "address": "10.1.0.2"}],
    }  # fmt: skip
    assert read["spark1"]["cuda"] and read["spark1"]["listens"] == [10250, 5001, 80, 443]
    assert read["spark1"]["reach"] == [{"name": "box1", "address": "10.1.1.1"}]
    assert not preflight.reads(where(), SETTINGS | {"cuda": False})["spark1"]["cuda"]


def test_an_address_that_is_missing_is_said_before_anything_is_read() -> None:
    cluster = where()
    bare = cluster.model_copy(
        update={"servers": [s.model_copy(update={"management_address": None}) for s in cluster.servers]}
    )
    with pytest.raises(InputError, match="box1: management_address is missing"):
        preflight.reads(bare, SETTINGS)


def test_the_report_leaves_open_what_a_box_is_not_asked(tmp_path: Path) -> None:
    cluster = where()
    read = probes(cluster)
    read["box1"]["disks"][0]["free_gib"] = 1.0
    read["box1"]["memory"]["cuda_free_gib"] = 23.0  # a gaming PC's own GPU says nothing of a Spark
    read["box1"]["memory"]["gib"]["SwapTotal"] = 1.0
    read["spark2"].update(gpus=[], system=read["spark2"]["system"] | {"release": ""})
    verdict = preflight.judge(cluster, read, SETTINGS)
    lines = {words[0]: words[1:] for words in map(str.split, verdict.report.split("\n\n")[0].splitlines())}
    assert verdict.failed and lines["disk"] == ["ok", "ok", "FAIL"]
    assert lines["machine"] == ["ok", "FAIL"] and lines["swap"] == ["ok", "ok", "warn"]
    kept = json.loads(Path(verdict.keep(tmp_path)).read_text())
    assert set(kept["nodes"]) == {"spark1", "spark2", "box1"}
    assert "box1" not in (tmp_path / "memory.json").read_text()
    assert report(["spark1"], ["disk"], []) == "all 1 checks hold on 1 node"


def test_a_run_that_is_limited_to_the_box_judges_it_alone() -> None:
    cluster = where()
    read = probes(cluster)
    verdict = preflight.judge(cluster, {"box1": read["box1"]}, SETTINGS, only=["box1"])
    assert verdict.nodes == ["box1"] and not verdict.failed
    lost(read, ("box1", "spark2"))
    (finding,) = preflight.judge(cluster, {"box1": read["box1"]}, SETTINGS, only=["box1"]).findings
    assert finding.message == "no answer from spark2 at 10.1.0.2"


@pytest.mark.parametrize(
    ("cluster", "warned"),
    [
        (lambda: inventory.load(), ["spark1"]),
        (lambda: inventory.load().model_copy(update={"security_mode": "device-plugin"}), []),
        (lambda: with_a_box(inventory.load()), []),
    ],
)
def test_an_engine_with_root_beside_the_server_is_warned_of(cluster: Callable[[], Cluster], warned: list[str]) -> None:
    """Where there is no box there is no other place for the server: a warning, and the run goes on."""
    where = cluster()
    settings = SETTINGS | {"profile": "nvidia--nemotron-3-ultra-550b-a55b-nvfp4"}
    judged = preflight.judge(where, {node.name: machine(node.name) for node in where.nodes}, settings)
    found = [finding for finding in judged.findings if finding.rule == "blast radius"]
    assert [finding.where for finding in found] == warned
    assert {finding.severity for finding in found} <= {"warning"}


def with_a_box(cluster: Cluster) -> Cluster:
    server = Server(name="box1", kubernetes_node="box1", management_address="192.168.1.5", management_interface="eth0")
    return cluster.model_copy(update={"servers": [server]})
