"""What is refused, what is missing, why K3s is restarted, and in which order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sparkloom.render.k3s import machines, paths
from sparkloom.site.k3s import judge
from tests.k3s_sites import chosen, site

OPTIONS = chosen()
PLAN = machines.plan(site(["spark1", "spark2", "spark3"]), OPTIONS)
AGENT = PLAN["hosts"]["spark4"]


def refused(state: dict[str, Any], host: str = "spark4", **options: Any) -> list[str]:
    rows = list(judge.refusals(host, PLAN["hosts"][host], state, chosen(**options)))
    return [f"{row.rule}: {row.message} | {row.expected} | {row.fix}" for row in rows]


def running(state: dict[str, Any], wanted: dict[str, Any]) -> dict[str, Any]:
    state["units"][wanted["service"]] |= {"exists": True, "ours": True, "active": True, "enabled": True}
    state["stamp"] = {**wanted["expected"], paths.BINARY: OPTIONS.sha256["arm64"], paths.TOKEN: "t"}
    items = machines.artifacts(OPTIONS, "aarch64")
    state["programs"] = {item["name"]: {"sha256": item["sha256"], "intact": True} for item in items}
    return state


def test_a_bare_machine_is_taken(state: dict[str, Any]) -> None:
    assert refused(state) == []
    assert [item["name"] for item in judge.missing(state, OPTIONS)] == [
        "k3s-arm64",
        "cni-plugins-linux-arm64-v1.9.1.tgz",
    ]
    assert judge.reasons(AGENT, state, OPTIONS, {}) == ["k3s-agent does not run"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"machine": "riscv64"}, "architecture: riscv64"),
        ({"kubelet": True}, "another Kubernetes that runs here"),
        ({"default_route": False}, "default route: none"),
        ({"version": "v1.36.1+k3s1"}, "Kubernetes cannot go back"),
        ({"version": "v1.33.4+k3s1"}, "first a 1.34 in versions.yml"),
    ],
)
def test_what_is_in_the_way_is_named(state: dict[str, Any], change: dict[str, Any], said: str) -> None:
    (row,) = refused(state | change)
    assert said in row


@pytest.mark.parametrize("version", ["v1.35.3+k3s1", "v1.34.9+k3s1", "v1.35.8+k3s1"])
def test_an_older_release_is_upgraded(state: dict[str, Any], version: str) -> None:
    assert refused(state | {"version": version}) == []


@pytest.mark.parametrize(
    ("here", "there", "first"),
    [
        ("v1.35.8+k3s1", "v1.36.3+k3s1", ""),
        ("v1.36.3+k3s1", "v1.37.0+k3s1", ""),
        ("v1.35.8+k3s1", "v1.37.0+k3s1", "first a 1.36 in versions.yml"),
    ],
)
def test_the_newest_minor_is_reached_in_steps(state: dict[str, Any], here: str, there: str, first: str) -> None:
    rows = refused(state | {"version": here}, k3s_version=there)
    assert [first in row for row in rows] == ([True] if first else [])


def test_a_k3s_of_somebody_elses_is_left_alone_unless_told(state: dict[str, Any]) -> None:
    state["units"]["k3s-agent"] |= {"exists": True, "active": True}
    (row,) = refused(state)
    assert "k3s_adopt: true" in row
    assert refused(state, k3s_adopt=True) == []


def test_a_machine_does_not_change_its_part_while_it_runs(state: dict[str, Any]) -> None:
    state["units"]["k3s"] |= {"exists": True, "ours": True, "active": True}
    (row,) = refused(state)
    assert "found a running k3s" in row.replace("K3s: ", "found ") or "a running k3s" in row


def test_a_machine_kind_without_a_checksum_is_refused(state: dict[str, Any]) -> None:
    (row,) = refused(state, k3s_sha256={"amd64": "0" * 64})
    assert "k3s_sha256.arm64" in row


def test_nothing_is_done_where_all_is_as_planned(state: dict[str, Any]) -> None:
    whole = running(state, AGENT)
    assert judge.missing(whole, OPTIONS) == []
    assert judge.reasons(AGENT, whole, OPTIONS, {paths.TOKEN: "t"}) == []


@pytest.mark.parametrize(
    ("key", "change", "said"),
    [
        ("stamp", {paths.CONFIG: "other"}, f"{paths.CONFIG} is not what K3s was started with"),
        ("stamp", {paths.BINARY: "older"}, f"{paths.BINARY} is not what"),
        ("stamp", {paths.TOKEN: "wrong"}, f"{paths.TOKEN} is not what"),
    ],
)
def test_why_it_is_restarted(state: dict[str, Any], key: str, change: dict[str, Any], said: str) -> None:
    whole = running(state, AGENT)
    whole[key] |= change
    (reason,) = judge.reasons(AGENT, whole, OPTIONS, {paths.TOKEN: "t"})
    assert reason.startswith(said)


def test_a_toolkit_that_came_later_is_a_reason(state: dict[str, Any]) -> None:
    whole = running(state, AGENT) | {"nvidia": "/usr/bin/nvidia-container-runtime"}
    assert judge.reasons(AGENT, whole, OPTIONS, {}) == ["/usr/bin/nvidia-container-runtime came after K3s' start"]
    assert judge.reasons(AGENT, whole | {"nvidia_known": True}, OPTIONS, {}) == []


def test_a_changed_plugin_is_installed_again_without_a_restart(state: dict[str, Any]) -> None:
    whole = running(state, AGENT)
    whole["programs"]["cni-plugins-linux-arm64-v1.9.1.tgz"]["intact"] = False
    assert [item["name"] for item in judge.missing(whole, OPTIONS)] == ["cni-plugins-linux-arm64-v1.9.1.tgz"]
    assert judge.reasons(AGENT, whole, OPTIONS, {}) == []


def test_servers_come_first_and_only_agents_that_never_ran_start_together() -> None:
    now = {name: {"reasons": ["why"], "running": True, "missing": []} for name in PLAN["hosts"]}
    assert [step["host"] for step in judge.sequence(PLAN["hosts"], now)] == ["spark2", "spark3", "spark4"]
    assert judge.together(PLAN["hosts"], now) == []
    bare = {name: {"reasons": ["why"], "running": False, "missing": []} for name in PLAN["hosts"]}
    assert [step["host"] for step in judge.sequence(PLAN["hosts"], bare)] == ["spark2", "spark3"]
    assert judge.together(PLAN["hosts"], bare) == ["spark4"]
    still = {name: {"reasons": [], "running": True, "missing": []} for name in PLAN["hosts"]}
    assert judge.sequence(PLAN["hosts"], still) == [] and judge.together(PLAN["hosts"], still) == []


def test_a_drop_in_by_hand_is_said_and_does_not_stop(state: dict[str, Any]) -> None:
    (row,) = judge.warnings("spark4", state | {"dropins": ["/etc/rancher/k3s/config.yaml.d/x.yaml"]})
    assert row.severity == "warning" and "x.yaml" in row.message


def test_the_folder_that_stands_for_the_network_must_be_whole(tmp_path: Path) -> None:
    items = machines.artifacts(chosen(k3s_artifacts=str(tmp_path)), "aarch64")
    rows = list(judge.held(str(tmp_path), items))
    assert len(rows) == 3 and all("no such file" in row.message for row in rows)
    (tmp_path / "k3s-arm64").write_text("not it")
    rows = list(judge.held(str(tmp_path), items))
    assert rows[0].expected == OPTIONS.sha256["arm64"] and "k3s_sha256.arm64 in versions.yml" in rows[0].fix


def test_a_node_that_is_not_well_is_a_reason_though_its_unit_runs(state: dict[str, Any]) -> None:
    """Run 2 left out an agent that was never let in, since its unit was active; run 3 was green over dead nodes."""
    whole = running(state, AGENT) | {"waits": "a fresh sign of life of its kubelet"}
    said = "k3s-agent runs, node spark4 does not: still waiting for a fresh sign of life of its kubelet"
    assert judge.reasons(AGENT, whole, OPTIONS, {paths.TOKEN: "t"}) == [said]
    whole["stamp"][paths.CONFIG] = "other"
    assert judge.reasons(AGENT, whole, OPTIONS, {paths.TOKEN: "t"}) == [
        f"{paths.CONFIG} is not what K3s was started with"
    ]


HAS = {"lo": ["127.0.0.1"], "enP7s7": ["10.1.0.4", "fe80::1"], "wlan0": []}


@pytest.mark.parametrize(
    ("addresses", "said"),
    [
        (HAS, []),
        ({}, []),  # no `ip` on the machine: nothing is known
        ({"lo": ["127.0.0.1"], "eno1": ["10.1.0.4"]}, ["no enP7s7 (ports: eno1, lo)"]),
        (HAS | {"enP7s7": []}, ["enP7s7 has no address"]),
        (HAS | {"enP7s7": ["10.9.9.9"]}, ["no port with 10.1.0.4 (enP7s7 has 10.9.9.9)"]),
        (HAS | {"enP7s7": ["10.1.9.9"], "wlan0": ["10.1.0.4"]}, []),  # flannel takes the port, kubelet the address
    ],
)
def test_a_port_that_is_not_there_is_refused_before_k3s_waits_for_it_for_ever(
    state: dict[str, Any], addresses: dict[str, list[str]], said: list[str]
) -> None:
    rows = list(judge.refusals("spark4", AGENT, state | {"addresses": addresses}, OPTIONS))
    assert [row.message for row in rows] == said and all("netplan" in row.fix for row in rows)


def test_no_eviction_by_memory_unless_a_site_wants_it_and_then_it_is_said() -> None:
    """Page cache of a model that was just read trips it: for kubelet that memory is used."""
    assert not any("memory.available" in argument for argument in OPTIONS.kubelet_args)
    assert any(argument.startswith("eviction-hard=nodefs") for argument in OPTIONS.kubelet_args)
    assert list(judge.doubts(OPTIONS)) == []
    (row,) = judge.doubts(chosen(k3s_kubelet_args=["eviction-soft=memory.available<2Gi"]))
    assert row.severity == "warning" and "node_base_memory_floor_gib" in row.fix


@pytest.mark.parametrize(
    ("artifacts", "mirrors", "named"),
    [
        ("", {}, []),
        ("/stick", {}, ["ghcr.io", "nvcr.io"]),
        ("/stick", {"*": {}}, ["ghcr.io", "nvcr.io"]),  # images of the other nodes only, which have none either
        ("/stick", {"nvcr.io": {"endpoint": ["https://r.home"]}}, ["ghcr.io"]),
        ("/stick", {"*": {"endpoint": ["https://r.home"]}}, []),
    ],
)
def test_images_that_a_site_without_a_way_out_would_still_pull_are_named(
    artifacts: str, mirrors: dict[str, Any], named: list[str]
) -> None:
    """`k3s_artifacts` said that nothing is downloaded; Multus, the device plugin and the engine were pulled.

    What lies in archives instead is judged by site.image_archives, and refused where it does not.
    """
    pulled = ["ghcr.io/k8snetworkplumbingwg/multus-cni:v4", "nvcr.io/nvidia/k8s-device-plugin:v0.18.2"]
    given = {"k3s_artifacts": artifacts, "k3s_registries": {"mirrors": mirrors}}
    assert list(judge.unmirrored(chosen(**given), pulled)) == []
    options = chosen(**given, k3s_images_from="registries")
    rows = list(judge.unmirrored(options, pulled))
    assert len(rows) == bool(named) and all(row.severity == "warning" for row in rows)
    assert [host for host in ("ghcr.io", "nvcr.io") if any(f"{host}" in row.message for row in rows)] == named
