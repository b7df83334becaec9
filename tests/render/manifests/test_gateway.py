"""The endpoint's objects: one path leads in, TLS from a Secret, hours for a first byte, no secret in any of them."""

from __future__ import annotations

import copy
import json

import pytest
import yaml

from sparkloom.inputs import profile
from sparkloom.launch import engines
from sparkloom.render import keys, manifests
from sparkloom.render.manifests import gateway
from tests import golden_files
from tests.render.manifests import case, schemas


def objects(name: str = case.ULTRA) -> list[case.Object]:
    return gateway.gateway(case.launch(name), "sparkloom", 8000)


@pytest.mark.parametrize("name", [case.ULTRA, case.SOLO, case.TRTLLM])
def test_golden_gateway(name: str) -> None:
    golden_files.check(name, "gateway.yaml", manifests.to_yaml(objects(name)))


@pytest.mark.parametrize("name", profile.names())
def test_objects_fit_their_kinds(name: str) -> None:
    read = list(yaml.safe_load_all(manifests.to_yaml(objects(name))))
    assert [text for item in read for text in schemas.problems(item, "1.35")] == []


def test_a_field_too_many_is_refused() -> None:
    for item in objects():
        bad = copy.deepcopy(item)
        bad["spec"]["timeouts"] = 1
        assert schemas.problems(bad, "1.35")


def test_it_leads_to_the_service_of_the_profile_and_nowhere_else() -> None:
    (service,) = [o for o in case.of_kind(case.build(), "Service") if "clusterIP" not in o["spec"]]
    (route,) = case.of_kind(objects(), "IngressRoute")
    (rule,) = route["spec"]["routes"]
    (target,) = rule["services"]
    assert rule["match"] == "PathPrefix(`/v1`)" and route["spec"]["entryPoints"] == ["websecure"]
    assert target["name"] == service["metadata"]["name"]
    assert target["port"] == service["spec"]["ports"][0]["port"]


def test_traefik_may_reach_the_engine_by_the_policy() -> None:
    """K3s' Traefik by its namespace and label; nobody else from outside the namespace without a label."""
    (policy,) = case.of_kind(case.build(), "NetworkPolicy")
    (rule,) = policy["spec"]["ingress"]
    traefik = [peer for peer in rule["from"] if "podSelector" in peer and "namespaceSelector" in peer]
    assert traefik == [
        {
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}},
            "podSelector": {"matchLabels": {"app.kubernetes.io/name": "traefik"}},
        }
    ]


@pytest.mark.parametrize("name", profile.names())
def test_rank_0_alone_gets_the_key_and_only_as_a_reference(name: str) -> None:
    launch, built = case.launch(name), case.build(name)
    engine = engines.get(launch.engine)
    for index, container in enumerate(case.engines(built)):
        words = [*container["command"], *container.get("args", [])]
        mounted = [m for m in container["volumeMounts"] if m["name"] == "key"]
        assert (words[-2:] == list(engine.key_words)) == bool(index == 0 and engine.key_words)
        assert bool(mounted) == (index == 0)
    volumes = [v for pod in case.pods(built) for v in pod["spec"]["volumes"] if v["name"] == "key"]
    assert all(v["secret"]["secretName"] == keys.SECRET for v in volumes)


def test_an_engine_that_checks_no_key_is_asked_for_by_its_supervisor_first() -> None:
    """TensorRT-LLM has no such option (its issue 9950): whoever reached it through Traefik would have been served."""
    made = {item["kind"]: item for item in objects(case.TRTLLM)}
    (rule,) = made["IngressRoute"]["spec"]["routes"]
    assert rule["middlewares"] == [{"name": made["Middleware"]["metadata"]["name"]}]
    (service,) = [o for o in case.of_kind(case.build(case.TRTLLM), "Service") if "clusterIP" not in o["spec"]]
    host, _, port = made["Middleware"]["spec"]["forwardAuth"]["address"].removeprefix("http://").partition(":")
    assert host.split(".")[:2] == [service["metadata"]["name"], "sparkloom"] and port == "20101/key"
    assert {entry["port"]: entry["targetPort"] for entry in service["spec"]["ports"]}[20101] == "probes"
    (policy,) = case.of_kind(case.build(case.TRTLLM), "NetworkPolicy")
    (rule,) = [rule for rule in policy["spec"]["ingress"] if rule["ports"][0]["port"] == 20101]
    assert [list(peer["podSelector"]["matchLabels"].values()) for peer in rule["from"]] == [["traefik"]]


@pytest.mark.parametrize("name", [case.ULTRA, case.SOLO, case.RPC])
def test_an_engine_that_checks_it_is_asked_by_nobody_else(name: str) -> None:
    assert "Middleware" not in {item["kind"] for item in objects(name)}
    assert all(rule["ports"][0]["port"] != 20101 for policy in case.of_kind(case.build(name), "NetworkPolicy")
               for rule in policy["spec"]["ingress"])  # fmt: skip


def test_nothing_rendered_is_a_secret() -> None:
    kinds = {item["kind"] for name in profile.names() for item in [*case.build(name), *objects(name)]}
    assert "Secret" not in kinds
    assert "sk-" not in json.dumps([*case.build(), *objects()])
