"""The endpoint's objects: one path leads in, TLS from a Secret, hours for a first byte, no secret in any of them."""

from __future__ import annotations

import copy
import json

import pytest
import yaml

from sparkloom.base.errors import InputError
from sparkloom.base.repository import REPO
from sparkloom.inputs import profile
from sparkloom.launch import engines
from sparkloom.render import keys, manifests
from sparkloom.render.manifests import gateway
from tests import golden_files
from tests.render.manifests import case, schemas

TERMS = gateway.Terms(8000, ("/v1/models", "/v1/models/*", "/v1/chat/completions"), 100, 100, 512)


def objects(name: str = case.ULTRA) -> list[case.Object]:
    return gateway.gateway(case.launch(name), "sparkloom", TERMS)


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
    route, plain = case.of_kind(objects(), "IngressRoute")
    short, question, long = route["spec"]["routes"]
    assert route["spec"]["entryPoints"] == ["websecure"] and question["priority"] > short["priority"] > long["priority"]
    for rule, port in ((question, "api"), (short, "api"), (long, "probes")):
        (target,) = rule["services"]
        assert target["name"] == service["metadata"]["name"]
        assert target["port"] == {entry["name"]: entry["port"] for entry in service["spec"]["ports"]}[port]
    (away,) = plain["spec"]["routes"]
    assert plain["spec"]["entryPoints"] == ["web"]
    assert away["services"] == [{"kind": "TraefikService", "name": "noop@internal"}]


def test_a_short_post_is_read_whole_after_its_key_was_seen_and_is_sent_once() -> None:
    """What keeps a body is Traefik's retry: of a status that no answer has, and of nothing else."""
    route, _ = case.of_kind(objects(), "IngressRoute")
    short, question, long = ([named["name"] for named in rule["middlewares"]] for rule in route["spec"]["routes"])
    assert short[0] == gateway.NAME and short[-1] == gateway.WHOLE and gateway.WHOLE not in [*question, *long]
    (kept,) = [o["spec"]["retry"] for o in case.of_kind(objects(), "Middleware") if "retry" in o["spec"]]
    assert kept["status"] == ["599"] and kept["disableRetryOnNetworkError"] and kept["attempts"] == 2


def test_traefik_may_reach_the_engine_by_the_policy() -> None:
    """K3s' Traefik by its namespace and label; nobody else from outside the namespace without a label."""
    policy, _ = case.of_kind(case.build(), "NetworkPolicy")
    rule, _ = policy["spec"]["ingress"]
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
        mounted = [m for m in container["volumeMounts"] if m["name"] in ("key", "clients")]
        assert (words[-2:] == list(engine.key_words)) == bool(index == 0 and engine.key_words)
        assert len(mounted) == 2 * (index == 0)
        assert not any("subPath" in m for m in mounted), "the kubelet never renews a single file that is mounted so"
    volumes = [v for pod in case.pods(built) for v in pod["spec"]["volumes"] if v["name"] in ("key", "clients")]
    assert [v["secret"]["secretName"] for v in volumes] == [keys.SECRET, keys.CLIENTS]


@pytest.mark.parametrize("name", [case.ULTRA, case.SOLO, case.RPC, case.TRTLLM])
def test_the_supervisor_is_asked_about_the_key_before_everything_else(name: str) -> None:
    """TensorRT-LLM checks none (its issue 9950); the others compare it in as long as the right part takes."""
    route, _ = case.of_kind(objects(name), "IngressRoute")
    for rule in route["spec"]["routes"]:
        assert rule["middlewares"][0] == {"name": "gateway"}
    made = {item["metadata"]["name"]: item for item in case.of_kind(objects(name), "Middleware")}
    (service,) = [o for o in case.of_kind(case.build(name), "Service") if "clusterIP" not in o["spec"]]
    host, _, port = made["gateway"]["spec"]["forwardAuth"]["address"].removeprefix("http://").partition(":")
    assert host.split(".")[:2] == [service["metadata"]["name"], "sparkloom"] and port == "20101/key"
    assert {entry["port"]: entry["targetPort"] for entry in service["spec"]["ports"]}[20101] == "probes"
    policy, _ = case.of_kind(case.build(name), "NetworkPolicy")
    (rule,) = [rule for rule in policy["spec"]["ingress"] if rule["ports"][0]["port"] == 20101]
    assert [list(peer["podSelector"]["matchLabels"].values()) for peer in rule["from"]] == [["traefik"]]


BAD = ("/health", "/v1", "/v1/", "/v1x", "/v1/../health", "/v1/a`) || Path(`/", "/v1/*/x", "v1/a")


@pytest.mark.parametrize("path", BAD)
def test_a_path_outside_v1_is_refused_by_its_name(path: str) -> None:
    with pytest.raises(InputError) as refused:
        gateway.Terms(8000, (path,), 100, 100, 512)
    assert f"'{path}'" in refused.value.problems[0].message and "gateway_paths" in refused.value.problems[0].message


def test_the_shipped_terms_are_taken() -> None:
    defaults = yaml.safe_load((REPO / "roles/gateway/defaults/main.yml").read_text())
    terms = gateway.Terms(8000, tuple(defaults["gateway_paths"]), defaults["gateway_body_megabytes"], 1, 1)
    assert terms.megabytes in gateway.MEGABYTES and "/v1/chat/completions" in terms.paths


def test_nothing_rendered_is_a_secret() -> None:
    kinds = {item["kind"] for name in profile.names() for item in [*case.build(name), *objects(name)]}
    assert "Secret" not in kinds
    assert "sk-" not in json.dumps([*case.build(), *objects()])
