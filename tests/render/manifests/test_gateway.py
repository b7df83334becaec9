"""The endpoint's objects: one way in, TLS from a Secret, no secret in any of them."""

from __future__ import annotations

import json
import re

import pytest
import yaml

from sparkloom.base.errors import InputError
from sparkloom.base.repository import REPO
from sparkloom.inputs import profile
from sparkloom.launch import engines
from sparkloom.onnode.now.labels import ONLY_KEY
from sparkloom.render import manifests
from sparkloom.render.manifests import gateway, router
from sparkloom.render.router import Terms
from tests.render.manifests import case, schemas

HOSTS = ["spark.example.org"]


def objects(*, page: bool = True) -> list[case.Object]:
    return [gateway.service("sparkloom", 443), gateway.ingress("sparkloom", "nginx", HOSTS, {"a/b": "c"}, page=page)]


def test_objects_fit_their_kinds() -> None:
    read = list(yaml.safe_load_all(manifests.to_yaml(objects())))
    assert [text for item in read for text in schemas.problems(item, "1.35")] == []


def test_the_nodes_ports_lead_to_the_router_and_to_nothing_that_is_not_for_clients() -> None:
    (service,) = case.of_kind(objects(), "Service")
    assert service["spec"]["type"] == "LoadBalancer" and service["spec"]["selector"] == router.SELECTOR
    assert {(one["port"], one["targetPort"]) for one in service["spec"]["ports"]} == {(443, "https"), (80, "http")}
    other = gateway.service("sparkloom", 8443)["spec"]["ports"]
    assert [one["port"] for one in other] == [8443], "port 80 is whoever's it was"


def test_somebody_s_ingress_leads_to_the_router_by_name_and_path() -> None:
    (ingress,) = case.of_kind(objects(), "Ingress")
    assert ingress["spec"]["tls"] == [{"hosts": HOSTS, "secretName": gateway.TLS_SECRET}]
    (rule,) = ingress["spec"]["rules"]
    paths = {(one["path"], one["pathType"]) for one in rule["http"]["paths"]}
    assert paths == {("/v1", "Prefix"), ("/", "Exact"), ("/page", "Prefix")}
    assert {one["backend"]["service"]["name"] for one in rule["http"]["paths"]} == {"router"}
    (alone,) = case.of_kind(objects(page=False), "Ingress")
    assert [one["path"] for one in alone["spec"]["rules"][0]["http"]["paths"]] == ["/v1"]


def test_nobody_from_elsewhere_reaches_an_engine() -> None:
    """Nobody from outside the namespace without a label."""
    policy, _ = case.of_kind(case.build(), "NetworkPolicy")
    (rule,) = policy["spec"]["ingress"]
    assert not [peer for peer in rule["from"] if "podSelector" in peer and "namespaceSelector" in peer]


@pytest.mark.parametrize("name", profile.names())
def test_rank_0_alone_gets_the_key_and_only_as_a_reference(name: str) -> None:
    launch, built = case.launch(name), case.build(name)
    engine = engines.get(launch.engine)
    for index, container in enumerate(case.engines(built)):
        words = [*container["command"], *container.get("args", [])]
        mounted = [m for m in container["volumeMounts"] if m["name"] == "key"]
        assert (words[-2:] == list(engine.key_words)) == bool(index == 0 and engine.key_words)
        assert len(mounted) == (index == 0)
        assert not any("subPath" in m for m in mounted), "the kubelet never renews a single file that is mounted so"
    volumes = [v for pod in case.pods(built) for v in pod["spec"]["volumes"] if v["name"] == "key"]
    assert [v["secret"]["secretName"] for v in volumes] == [ONLY_KEY]


BAD = ("/health", "/v1", "/v1/", "/v1x", "/v1/../health", "/v1/a`) || Path(`/", "/v1/*/x", "v1/a")


@pytest.mark.parametrize("path", BAD)
def test_a_path_outside_v1_is_refused_by_its_name(path: str) -> None:
    with pytest.raises(InputError) as refused:
        Terms(paths=(path,))
    assert f"'{path}'" in refused.value.problems[0].message and "gateway_paths" in refused.value.problems[0].message


def test_the_shipped_terms_are_taken() -> None:
    defaults = yaml.safe_load((REPO / "roles/gateway/defaults/main.yml").read_text())
    assert Terms(paths=tuple(defaults["gateway_paths"]), megabytes=defaults["gateway_body_megabytes"]) == Terms()


def test_nothing_rendered_is_a_secret() -> None:
    kinds = {item["kind"] for name in profile.names() for item in [*case.build(name), *objects()]}
    assert "Secret" not in kinds
    assert not re.search(r"\bsk-", json.dumps([*case.build(), *objects()])), "disk-pressure is no key"
