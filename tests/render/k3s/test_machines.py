"""What each machine is told: always in the words of the pinned release, and the same on all servers."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from sparkloom import case
from sparkloom.base.errors import InputError
from sparkloom.render.k3s import config, flags, machines, paths
from tests.k3s_sites import chosen, site

THREE = ["spark1", "spark2", "spark3"]


def settings(planned: dict[str, Any], host: str) -> dict[str, Any]:
    files = {file["path"]: file["content"] for file in planned["hosts"][host]["files"]}
    return dict(yaml.safe_load(files[paths.CONFIG]))


@pytest.mark.parametrize("servers", [None, ["spark2"], THREE, ["box1"], ["box1", "spark1", "box2"]])
def test_every_key_is_a_flag_of_the_pinned_release(servers: list[str] | None) -> None:
    options = chosen(k3s_api_host="k3s.home")
    planned = machines.plan(site(servers, pod_cidr="10.50.0.0/16", service_cidr="10.51.0.0/16"), options)
    for host, wanted in planned["hosts"].items():
        known = flags.known(options.version, wanted["role"])
        assert set(settings(planned, host)) <= set(known), host


def test_the_first_spark_serves_where_no_group_says_otherwise() -> None:
    planned = machines.plan(site(), chosen())
    roles = {host: wanted["role"] for host, wanted in planned["hosts"].items()}
    assert roles == {"spark1": "server", "spark2": "agent", "spark3": "agent", "spark4": "agent"}
    assert planned["first"] == "spark1" and planned["api"] == "https://10.1.0.1:6443"


def test_three_servers_make_one_cluster() -> None:
    planned = machines.plan(site(THREE), chosen())
    every = {host: settings(planned, host) for host in planned["hosts"]}
    assert [host for host in every if every[host].get("cluster-init")] == ["spark1"]
    assert {every[host].get("server") for host in every if host != "spark1"} == {"https://10.1.0.1:6443"}
    own = ("node-name", "node-ip", "node-label", "cluster-init", "server")
    same = [{key: value for key, value in every[host].items() if key not in own} for host in THREE]
    assert same[0] == same[1] == same[2]
    assert same[0]["secrets-encryption"] is True and same[0]["tls-san"][:3] == ["10.1.0.1", "10.1.0.2", "10.1.0.3"]


def test_a_server_beside_the_sparks_has_its_own_interface_and_no_rails() -> None:
    cluster = site(["box1"])
    box = cluster.servers[0].model_copy(update={"management_interface": "eno1"})
    planned = machines.plan(cluster.model_copy(update={"servers": [box]}), chosen())
    assert settings(planned, "box1")["flannel-iface"] == "eno1" and "node-label" not in settings(planned, "box1")
    assert settings(planned, "spark1")["flannel-iface"] == "enP7s7"
    assert settings(planned, "spark1")["node-label"] == ["sparkloom/fabric-index=1", "sparkloom/rails=a"]
    assert planned["hosts"]["spark1"]["role"] == "agent"


def test_no_secret_stands_in_what_is_planned_and_what_is_private_is_closed() -> None:
    planned = machines.plan(site(THREE), chosen())
    assert "K10" not in json.dumps(planned)
    for wanted in planned["hosts"].values():
        modes = {file["path"]: file["mode"] for file in wanted["files"]}
        assert {mode for path, mode in modes.items() if path.startswith(paths.ETC)} == {"0600"}
    tokens = {"server": "S", "agent": "A", "agent_passphrase": "P"}
    each = {host: machines.secrets(wanted, tokens) for host, wanted in planned["hosts"].items()}
    assert each["spark1"] == {}
    assert each["spark2"] == {paths.TOKEN: "S", paths.AGENT_TOKEN: "P"}
    assert each["spark4"] == {paths.TOKEN: "A"}, "an agent's token does not let in a server"


def test_the_unit_writes_down_what_it_starts_with() -> None:
    planned = machines.plan(site(), chosen())
    for host in ("spark1", "spark2"):
        wanted = planned["hosts"][host]
        text = next(f["content"] for f in wanted["files"] if f["path"] == paths.unit(wanted["role"]))
        (line,) = [line for line in text.splitlines() if "sha256sum" in line]
        stamped = line.partition("sha256sum ")[2].partition(" >")[0].split()
        assert set(wanted["expected"]) | {paths.BINARY} <= set(stamped)
        assert f"ExecStart={paths.BINARY} {wanted['role']}\n" in text, "no secret and no setting on the command line"


def test_no_rule_of_ours_holds_for_somebody_elses_pods() -> None:
    """`restricted` by the API server's admission configuration refused a person's own pods in their own namespaces."""
    planned = machines.plan(site(THREE), chosen())
    assert "admission" not in json.dumps(planned)


@pytest.mark.parametrize(
    ("chosen_by_site", "backend", "goes"),
    [({}, "wireguard-native", "flannel.1"), ({"flannel-backend": "vxlan"}, "vxlan", "flannel-wg")],
)
def test_what_pods_of_two_nodes_say_is_encrypted_unless_the_site_says_otherwise(
    chosen_by_site: dict[str, str], backend: str, goes: str
) -> None:
    planned = machines.plan(site(THREE), chosen(k3s_server_config=chosen_by_site))
    backends = {host: settings(planned, host).get("flannel-backend") for host in planned["hosts"]}
    assert backends == {**dict.fromkeys(THREE, backend), "spark4": None}, "an agent asks its server"
    for wanted in planned["hosts"].values():
        (unit,) = [file["content"] for file in wanted["files"] if file["path"] == paths.unit(wanted["role"])]
        assert f"ip link delete {goes}\n" in unit


def test_a_server_writes_down_who_asked_and_never_what_a_secret_holds() -> None:
    planned = machines.plan(site(), chosen())
    (policy,) = [file for file in planned["hosts"]["spark1"]["files"] if file["path"] == paths.AUDIT]
    levels = {rule["level"] for rule in yaml.safe_load(policy["content"])["rules"]}
    assert levels == {"None", "Metadata"} and policy["mode"] == "0600"
    assert f"audit-policy-file={paths.AUDIT}" in settings(planned, "spark1")["kube-apiserver-arg"]
    assert paths.AUDIT not in planned["hosts"]["spark2"]["expected"]


def test_a_registry_of_the_site_is_kept() -> None:
    mine = {
        "mirrors": {"quay.example": {"endpoint": ["https://mirror.home"]}},
        "configs": {"mirror.home": {"auth": {}}},
    }
    merged = config.registries(chosen(k3s_registries=mine))
    assert (
        merged["mirrors"] == {**{host: {} for host in config.SHARED}, **mine["mirrors"]}
        and merged["configs"] == mine["configs"]
    )


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"k3s_server_config": {"embeded-registry": True}}, "did you mean 'embedded-registry'"),
        ({"k3s_agent_config": {"cluster-init": True}}, "no flag of k3s agent"),
        ({"k3s_server_config": {"cluster-init": "yes"}}, "expects true or false"),
        ({"k3s_server_config": {"https-listen-port": "x"}}, "expects a number"),
        ({"k3s_version": "v1.99.0+k3s1"}, "nothing is known of v1.99.0+k3s1's flags"),
        ({"k3s_sha256": {"arm64": "0123"}}, "k3s_*"),
    ],
)
def test_what_k3s_would_not_take_is_refused_before_any_machine(change: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as refusal:
        machines.plan(site(), chosen(**change))
    assert said in str(refusal.value)


def test_an_inventory_that_cannot_be_a_cluster_is_refused() -> None:
    with pytest.raises(InputError, match="1 or 3"):
        machines.members(site(["spark1", "spark2"]))
    lost = site()
    nodes = [node.model_copy(update={"management_address": None}) for node in lost.nodes]
    with pytest.raises(InputError, match="spark4: management_address is missing"):
        machines.members(lost.model_copy(update={"nodes": nodes}))
    twice = [node.model_copy(update={"management_address": "10.1.0.9"}) for node in lost.nodes]
    with pytest.raises(InputError, match="stands there twice"):
        machines.members(lost.model_copy(update={"nodes": twice}))


def test_the_shipped_inventory_names_its_server() -> None:
    shipped = case.cluster()
    assert [server.name for server in shipped.servers] == ["spark1"]
    assert shipped.servers[0].management_address == "192.168.1.11"


def test_release_files_are_those_of_the_machines_kind() -> None:
    online = machines.artifacts(chosen(), "aarch64")
    assert [item["name"] for item in online] == ["k3s-arm64", "cni-plugins-linux-arm64-v1.9.1.tgz"]
    assert online[0]["url"].endswith("/v1.35.8%2Bk3s1/k3s-arm64")
    held = machines.artifacts(chosen(k3s_artifacts="/media/stick"), "x86_64")
    assert [item["name"] for item in held][::2] == ["k3s", "k3s-airgap-images-amd64.tar.zst"]
