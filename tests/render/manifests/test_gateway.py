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
from sparkloom.render.router import Terms
from tests.render.manifests import case, schemas

TERMS = Terms(timeout=8000, paths=("/v1/models", "/v1/models/*", "/v1/chat/completions"))


def objects() -> list[case.Object]:
    return gateway.gateway("sparkloom", TERMS, page=True)


def test_objects_fit_their_kinds() -> None:
    read = list(yaml.safe_load_all(manifests.to_yaml(objects())))
    assert [text for item in read for text in schemas.problems(item, "1.35")] == []


def test_a_field_too_many_is_refused() -> None:
    for item in objects():
        bad = copy.deepcopy(item)
        bad["spec"]["timeouts"] = 1
        assert schemas.problems(bad, "1.35")


def test_it_leads_to_the_router_and_nowhere_else() -> None:
    route, plain = case.of_kind(objects(), "IngressRoute")
    post, get = route["spec"]["routes"]
    assert route["spec"]["entryPoints"] == ["websecure"] and get["priority"] > post["priority"]
    assert {(to["name"], to["port"]) for rule in (post, get) for to in rule["services"]} == {("router", TERMS.port)}
    (away,) = plain["spec"]["routes"]
    assert plain["spec"]["entryPoints"] == ["web"]
    assert away["services"] == [{"kind": "TraefikService", "name": "noop@internal"}]


def test_a_short_post_is_read_whole_and_is_sent_once() -> None:
    """What keeps a body is Traefik's retry: of a status that no answer has, and of nothing else."""
    route, _ = case.of_kind(objects(), "IngressRoute")
    post, get = ([named["name"] for named in rule["middlewares"]] for rule in route["spec"]["routes"])
    assert (post, get) == ([gateway.WHOLE], [gateway.BODILESS])
    (kept,) = [o["spec"]["retry"] for o in case.of_kind(objects(), "Middleware") if "retry" in o["spec"]]
    assert kept["status"] == ["599"] and kept["disableRetryOnNetworkError"] and kept["attempts"] == 2


def test_traefik_reaches_the_router_and_no_engine() -> None:
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
    assert [v["secret"]["secretName"] for v in volumes] == [keys.SECRET]


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
    assert "sk-" not in json.dumps([*case.build(), *objects()])
