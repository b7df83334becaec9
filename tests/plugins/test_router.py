"""The router's tasks: what they apply, and that no key is in what they tell."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sparkloom.base.errors import InputError
from sparkloom.inputs.client_keys import hashed
from sparkloom.launch.groups import Running
from sparkloom.site import ansible, client, router
from sparkloom.site.groups import observed
from sparkloom.site.tasks import gateway as gateway_tasks
from sparkloom.site.tasks import router as router_tasks
from tests.inventories import serving
from tests.plugins.loading import context
from tests.site.test_router import Reached

LIST = [{"profile": "openai--gpt-oss-120b", "name": "oss"}, {"profile": "radixark--qwen3.8-27b-nvfp4", "name": "chat"}]
OWN = "sk-the-engines-own-0123456789"
SITE = "sk-the-sites-own-key-0123456789"
TERMS = {"timeout": 8000, "paths": ["/v1/models", "/v1/chat/completions"], "body_megabytes": 100}


class Cluster(Reached):
    def secret(self, name: str) -> dict[str, str] | None:
        return {"key": OWN} if name.endswith("engine-key") else self.kept

    def has_service(self, name: str) -> bool:
        return name == "page"

    def node_addresses(self) -> list[str]:
        return ["10.0.0.1"]


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    from sparkloom import case

    folder = serving(tmp_path, "profile: openai--gpt-oss-120b\n")
    cluster = case.cluster(folder)
    key = tmp_path / "api-key"
    key.write_text(SITE)
    key.chmod(0o600)
    keys = folder / "group_vars" / "all" / "keys.yml"
    keys.write_text(f"client_keys:\n  - {{name: alice, hash: {hashed('sk-alice')}}}\n")
    reached = Cluster(None, pods=0)
    monkeypatch.setattr(ansible, "cluster", lambda task_vars: cluster)
    monkeypatch.setattr(client, "of", lambda cluster: reached)
    monkeypatch.setattr(
        observed,
        "running",
        lambda cluster: {"oss": Running("oss", "openai--gpt-oss-120b", ("spark1",))},
    )
    monkeypatch.setattr(ansible, "listed", lambda task_vars: {"serve": LIST} if "serve" in task_vars else None)
    return {"reached": reached, "key": key, "vars": {"inventory_dir": str(folder), "serve": LIST}}


def given(site: dict[str, Any], dry: bool = False, **more: Any) -> dict[str, Any]:
    asked: dict[str, Any] = {
        "image": "docker.io/envoyproxy/envoy:v1.40.0",
        "memory": 1024,
        **TERMS,
        "key_file": str(site["key"]),
        "ingress": "auto",
    }
    return router_tasks.give(context(site["vars"], dry=dry), **{**asked, **more})


def test_every_group_is_routed_and_those_that_run_are_asked(site: dict[str, Any]) -> None:
    told = given(site)
    assert told["changed"] and told["names"] == ["oss"] and "2 keys and 2 models" in told["msg"]
    files = site["reached"].kept
    assert {"admission.lua", "router.lua", "secret-oss.yaml", "secret-chat.yaml"} <= set(files)
    table = router.table_of(files["routes.yaml"])
    assert {who["name"] for who in table["keys"].values()} == {"alice", "owner"}
    assert {"oss", "chat"} <= set(table["models"])
    assert "page.sparkloom.svc.cluster.local" in files["clusters.yaml"], "there is a Service of that name"
    assert sorted(text for name, text in files.items() if name.startswith("own-")) == [OWN, router.NO_KEY_YET]
    assert not given(site)["changed"]


def test_no_key_and_no_hash_is_in_what_is_told(site: dict[str, Any]) -> None:
    text = json.dumps([given(site, dry=True), given(site)])
    assert OWN not in text and SITE not in text and hashed("sk-alice").removeprefix("sha256:") not in text
    assert hashed(SITE).removeprefix("sha256:") not in text


def test_a_key_that_comes_meanwhile_is_not_overwritten(site: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """`keys add` while the playbook runs: the router had it, and then got the keys of before."""
    file = Path(site["vars"]["inventory_dir"]) / "group_vars/all/keys.yml"
    give = router.give

    def slowly(*words: Any, **more: Any) -> router.Given:
        if "bob" not in file.read_text():
            file.write_text(file.read_text() + f"  - {{name: bob, hash: {hashed('sk-bob')}}}\n")
        return give(*words, **more)

    monkeypatch.setattr(router, "give", slowly)
    given(site)
    kept = router.table_of(site["reached"].kept[router.ROUTES])["keys"].values()
    assert {one["name"] for one in kept} == {"alice", "bob", "owner"}


def test_a_dry_run_tells_what_differs_and_gives_nothing(site: dict[str, Any]) -> None:
    told = given(site, dry=True)
    assert told["changed"] and site["reached"].kept is None
    assert told["drift"] == [{"what": "Secret router", "found": "not there", "expected": "the router's files"}]


def test_one_profile_with_keys_of_people_has_a_router_too(site: dict[str, Any]) -> None:
    del site["vars"]["serve"]
    told = given(site, profile="openai--gpt-oss-120b")
    assert "2 keys and 2 models" in told["msg"], "what runs under another name is asked for by that name"
    models = router.table_of(site["reached"].kept["routes.yaml"])["models"]
    assert models["oss"]["group"] == "oss" and models["openai/gpt-oss-120b"]["group"] == "openai--gpt-oss-120b"


def test_without_an_image_there_is_none(site: dict[str, Any]) -> None:
    with pytest.raises(Exception, match="gateway_router_image: nothing says which image"):
        given(site, image="")


def prepared(site: dict[str, Any], folder: Path, **more: Any) -> dict[str, Any]:
    site["reached"].put_secret = lambda *words, **more: True  # no key of a certificate is kept beside the files
    asked: dict[str, Any] = {
        "names": [], "folder": str(folder), "certificate": "", "certificate_key": "", "port": 443, "ingress": "auto",
        "annotations": {"a/b": "c"},
    }  # fmt: skip
    return gateway_tasks.prepare(context(site["vars"], dry=True), **{**asked, **more})


def test_the_nodes_ports_lead_to_the_router(site: dict[str, Any], tmp_path: Path) -> None:
    (service,) = prepared(site, tmp_path)["objects"]
    assert (
        service["spec"]["type"] == "LoadBalancer" and service["spec"]["selector"]["app.kubernetes.io/name"] == "router"
    )


def test_an_ingress_of_somebody_s_cluster_is_asked_for_by_name(site: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected the endpoint's names"):
        prepared(site, tmp_path, ingress="nginx")
    told = prepared(site, tmp_path, ingress="nginx", names=["spark.example.org"])
    (ingress,) = told["objects"]
    assert told["name"] == "spark.example.org" and ingress["spec"]["ingressClassName"] == "nginx"
    assert ingress["metadata"]["annotations"] == {"a/b": "c"}
    assert {one["path"] for one in ingress["spec"]["rules"][0]["http"]["paths"]} == {"/v1", "/", "/page"}
    del site["reached"].put_secret
    given(site, ingress="nginx")
    assert "certificate.yaml" not in site["reached"].kept


def test_the_site_s_own_key_is_made_where_it_is_missing(site: dict[str, Any]) -> None:
    site["key"].unlink()
    assert given(site, dry=True)["changed"] and not site["key"].exists()
    assert given(site)["changed"] and site["key"].stat().st_mode & 0o777 == 0o600
    (owner,) = [
        one for one in router.table_of(site["reached"].kept[router.ROUTES])["keys"].items() if one[1]["name"] == "owner"
    ]
    assert f"sha256:{owner[0]}" == hashed(site["key"].read_text().strip())
