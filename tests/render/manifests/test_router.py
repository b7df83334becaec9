"""The router's objects for a list of three groups: what it may, who may reach it, and what makes another pod."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from sparkloom.base.errors import InputError
from sparkloom.inputs import inventory, serving
from sparkloom.inputs.client_keys import Key, hashed
from sparkloom.inputs.cluster import Cluster
from sparkloom.launch.groups import Running
from sparkloom.render import manifests
from sparkloom.render.manifests import gateway, names
from sparkloom.render.manifests import router as objects
from sparkloom.render.router import Group, Terms
from sparkloom.site import router
from tests import golden_files, inventories
from tests.render.manifests import case, schemas

LIST = """\
serve:
  - nvidia--glm-5.3-flash-nvfp4
  - {profile: radixark--qwen3.8-27b-nvfp4, name: chat, alias: qwen, fraction: 0.42}
  - {profile: openai--gpt-oss-120b, nodes: [spark4]}
"""
IMAGE = "docker.io/envoyproxy/envoy:v1.40.0"
RUNS = {
    "nvidia--glm-5.3-flash-nvfp4": Running("nvidia--glm-5.3-flash-nvfp4", "", ("spark1",), only=True),
    "chat": Running("chat", "", ("spark3",)),
}
OWN = {"engine-own-key": "sk-own-glm-0123456789", "chat-engine-key": "sk-own-chat-0123456789"}
PEOPLE = (
    Key(name="alice", hash=hashed("sk-alice"), models=["qwen"], requests_per_minute=60, expires="2027-02-23"),
    Key(name="owner", hash=hashed("sk-owner")),
)


def site(folder: Path, listed: str = LIST) -> tuple[Cluster, list[Group]]:
    where = inventories.serving(folder, listed)
    cluster = inventory.load(where)
    return cluster, router.models(serving.load(where, cluster), cluster, RUNS)


def rendered(folder: Path, *, page: bool = False, **terms: Any) -> tuple[list[case.Object], dict[str, str]]:
    cluster, found = site(folder)
    terms = {"tls": objects.CERTIFICATES, **terms}
    chosen = Terms(page="page.sparkloom.svc.cluster.local:8090" if page else "", **terms)
    files = router.files(found, OWN, PEOPLE, chosen)
    return objects.router(IMAGE, chosen, [one.port for one in found], cluster, files), files


def test_golden_router_of_three_groups(tmp_path: Path) -> None:
    built, files = rendered(tmp_path)
    golden_files.check("router-of-three", "objects.yaml", manifests.to_yaml(built))
    golden_files.check("router-of-three", "clusters.yaml", files["clusters.yaml"])
    golden_files.check("router-of-three", "routes.yaml", files["routes.yaml"])
    golden_files.check("router-of-three", "listeners.yaml", files["listeners.yaml"])
    golden_files.check("router-of-three", "gateway.yaml", manifests.to_yaml([gateway.service("sparkloom", 443)]))


@pytest.mark.parametrize("release", schemas.RELEASES)
def test_objects_fit_their_kinds(tmp_path: Path, release: str) -> None:
    built, _ = rendered(tmp_path, page=True)
    ingress = gateway.ingress("sparkloom", "traefik", ["spark.example.org"], {}, page=True)
    read = yaml.safe_load_all(manifests.to_yaml([*built, gateway.service("sparkloom", 443), ingress]))
    assert [text for item in read for text in schemas.problems(item, release)] == []


def test_models_are_called_as_the_list_says_and_told_as_the_launch_is(tmp_path: Path) -> None:
    _, found = site(tmp_path)
    glm, chat, oss = found
    assert (chat.names, chat.model, chat.label, chat.secret) == (("chat", "qwen"), "qwen", "chat", "chat-engine-key")
    assert (glm.secret, oss.secret) == ("engine-own-key", ""), "who does not run has no key yet"
    assert glm.facts["max_model_len"] > 100_000 and "tools" in glm.facts["capabilities"]
    assert all(one.port for one in found)


def test_what_runs_without_being_listed_is_routed_too(tmp_path: Path) -> None:
    where = inventories.serving(tmp_path, LIST)
    cluster = inventory.load(where)
    listed = serving.load(where, cluster)
    extra = Running("old", "radixark--qwen3.8-27b-nvfp4", ("spark2",))
    gone = Running("lost", "a-profile-that-is-no-more", ("spark2",))
    found = router.models(listed, cluster, {**RUNS, "old": extra, "lost": gone})
    assert [one.name for one in found][3:] == ["old"] and found[3].secret == "old-engine-key"
    assert len({name for one in found for name in one.names}) >= 7


def test_a_key_or_a_group_more_is_the_same_pod(tmp_path: Path) -> None:
    built, files = rendered(tmp_path)
    _, found = site(tmp_path / "again")
    fewer = router.files(found[:2], OWN, PEOPLE[1:], Terms())
    assert fewer["routes.yaml"] != files["routes.yaml"] and fewer["keys"] != files["keys"]
    assert objects.started_by(Terms(), fewer) == objects.started_by(Terms(), files)
    assert objects.started_by(Terms(), {**files, "admission.lua": ""}) != objects.started_by(Terms(), files)
    (deployment,) = case.of_kind(built, "Deployment")
    assert case.of_kind(rendered(tmp_path / "page", page=True)[0], "Deployment") == [deployment]


def test_an_engine_s_other_key_is_another_file(tmp_path: Path) -> None:
    _, found = site(tmp_path)
    before = router.files(found, OWN, PEOPLE, Terms())
    after = router.files(found, {**OWN, "chat-engine-key": "sk-another"}, PEOPLE, Terms())
    assert before["secret-chat.yaml"] != after["secret-chat.yaml"]
    (file,) = [name for name in after if name.startswith("own-chat-")]
    assert after[file] == "sk-another" and f"/etc/sparkloom-router/..data/{file}" in after["secret-chat.yaml"]
    assert set(before) & set(after) == {name for name in before if not name.startswith("own-chat-")}


def test_the_pod_may_nothing_and_ends_in_peace(tmp_path: Path) -> None:
    (deployment,) = case.of_kind(rendered(tmp_path)[0], "Deployment")
    spec = deployment["spec"]["template"]["spec"]
    (container,), (folder,) = spec["containers"], spec["initContainers"]
    assert (
        folder["securityContext"]["capabilities"] == {"drop": ["ALL"]} and folder["securityContext"]["runAsUser"] == 0
    )
    assert folder["command"][2:] == ['chown ":$1" "$2" && chmod 0770 "$2"', "log", "65532", "/var/log/sparkloom/router"]
    assert [one["name"] for one in container["volumeMounts"] if not one.get("readOnly")] == ["log"]
    assert spec["securityContext"]["runAsNonRoot"] and not spec["automountServiceAccountToken"]
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert container["securityContext"]["readOnlyRootFilesystem"]
    assert deployment["spec"]["strategy"]["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 0}
    hook = container["lifecycle"]["preStop"]["exec"]["command"][-1]
    assert f"-lt {spec['terminationGracePeriodSeconds'] - 20} " in hook and "/healthcheck/fail" in hook
    assert "subPath" not in json.dumps(container["volumeMounts"]), "the kubelet never renews a file that is mounted so"
    probes = {container[name]["httpGet"]["port"] for name in ("readinessProbe", "livenessProbe", "startupProbe")}
    assert probes == {"probes"}, "the one that answers in a flood"


def test_who_reaches_the_router_and_whom_it_reaches(tmp_path: Path) -> None:
    built, _ = rendered(tmp_path, page=True)
    heard, out, asks = case.of_kind(built, "NetworkPolicy")
    clients, watchers = heard["spec"]["ingress"]
    assert "from" not in clients, "clients are anywhere"
    assert [entry["port"] for entry in clients["ports"]] == [8080, 8443]
    assert [entry["port"] for entry in watchers["ports"]] == [9090] and watchers["from"]
    engines, dns, page = out["spec"]["egress"]
    assert engines["to"] == [{"podSelector": {"matchLabels": names.ENGINES}}]
    assert {entry["port"] for entry in engines["ports"]} > {20101} and dns["ports"][0]["port"] == 53
    assert page["ports"] == [{"protocol": "TCP", "port": 8090}]
    assert asks["spec"]["podSelector"] == {"matchLabels": names.ENGINES}
    assert asks["spec"]["ingress"][0]["ports"] == [{"protocol": "TCP", "port": 20101}]


def test_a_group_on_demand_is_its_waker_s_and_no_other_is(tmp_path: Path) -> None:
    _, found = site(tmp_path, LIST.replace("name: chat,", "name: chat, idle_minutes: 15,"))
    files = router.files(found, OWN, PEOPLE, Terms())
    made = {one["name"]: one for one in yaml.safe_load(files["clusters.yaml"])["resources"]}
    beside = [name for name in made if "+" in name and not name.endswith("+supervisor")]
    assert beside == ["chat+waker", "chat+on-demand"]
    (place,) = made["chat+waker"]["load_assignment"]["endpoints"][0]["lb_endpoints"]
    where = place["endpoint"]["address"]["socket_address"]
    assert where == {"address": "waker.sparkloom.svc.cluster.local", "port_value": 8091}


def test_no_secret_and_no_hash_is_in_an_object(tmp_path: Path) -> None:
    text = json.dumps(rendered(tmp_path)[0])
    assert "sk-" not in text and PEOPLE[0].hash.removeprefix("sha256:") not in text
    assert "Secret" not in {item["kind"] for item in rendered(tmp_path / "again")[0]}


def test_it_ends_tls_by_a_secret_and_sends_who_comes_without_to_it(tmp_path: Path) -> None:
    built, files = rendered(tmp_path)
    (deployment,) = case.of_kind(built, "Deployment")
    spec = deployment["spec"]["template"]["spec"]
    held = {volume["name"]: volume.get("projected", volume)["sources" if "projected" in volume else "hostPath"]
            for volume in spec["volumes"]}  # fmt: skip
    mounted = {entry["mountPath"]: held[entry["name"]] for entry in spec["containers"][0]["volumeMounts"]}
    assert mounted["/etc/sparkloom-tls"] == [{"secret": {"name": gateway.TLS_SECRET}}]
    assert [one["secret"]["name"] for one in mounted["/etc/sparkloom-router"]] == ["router", "client-keys"]
    ports = {entry["name"]: entry["containerPort"] for entry in spec["containers"][0]["ports"]}
    (service,) = [gateway.service("sparkloom", 443)]
    assert {entry["targetPort"] for entry in service["spec"]["ports"]} < set(ports)
    listeners = {one["name"]: one for one in yaml.safe_load(files["listeners.yaml"])["resources"]}
    assert "transport_socket" in listeners["clients"]["filter_chains"][0]
    assert listeners["clients"]["address"]["socket_address"]["port_value"] == ports["https"]
    assert listeners["plain"]["address"]["socket_address"]["port_value"] == ports["http"]
    secret = yaml.safe_load(files["certificate.yaml"])["resources"][0]["tls_certificate"]
    assert secret["watched_directory"] == {"path": "/etc/sparkloom-tls"}


def test_behind_an_ingress_it_ends_no_tls(tmp_path: Path) -> None:
    built, files = rendered(tmp_path, tls="")
    assert "certificate.yaml" not in files and "transport_socket" not in files["listeners.yaml"]
    (deployment,) = case.of_kind(built, "Deployment")
    assert [volume["name"] for volume in deployment["spec"]["template"]["spec"]["volumes"]] == ["files", "log"]


def test_a_memory_that_holds_no_request_is_refused() -> None:
    with pytest.raises(InputError, match="512 MiB hold no request of 100 MB"):
        replace(Terms(), memory=512)
