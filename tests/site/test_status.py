"""What is served, beside what would be rendered now: pods as the cluster shows them, a record as a start writes it."""

from __future__ import annotations

import json
from types import SimpleNamespace as NS
from typing import Any

import pytest

from sparkloom import case
from sparkloom.render.manifests import names
from sparkloom.site import client, served, status
from tests.plugins.loading import module

ULTRA = "nvidia--nemotron-3-ultra-550b-a55b-nvfp4"


class Cluster:
    """As much of client.Client as keeps a ConfigMap and shows pods."""

    def __init__(self, pods: list[Any]) -> None:
        self.kept: dict[str, dict[str, str]] = {}
        self.there = pods

    def config_map(self, name: str) -> dict[str, str] | None:
        return self.kept.get(name)

    def put_config_map(self, name: str, data: dict[str, str], *, dry: bool = False) -> bool:
        self.kept[name] = data
        return True

    def pods(self, labels: dict[str, str]) -> list[Any]:
        return self.there


def serve(monkeypatch: pytest.MonkeyPatch, policy: str) -> tuple[Cluster, str]:
    """A site on which sparkloom_render's objects were applied with a policy and sparkloom_record kept the start."""
    digest = case.render(ULTRA, force=True, policy=policy).digest
    metadata = NS(labels={names.PROFILE: ULTRA}, annotations={names.CONFIG_HASH: digest})
    cluster = Cluster([NS(metadata=metadata, spec=NS(node_name="n"), status=NS(container_statuses=[], conditions=[]))])
    monkeypatch.setattr(client.Client, "at", lambda *_: cluster)
    record = module("sparkloom_record", "action")
    monkeypatch.setattr(record.ansible, "inventory", lambda task_vars: None)
    told = {"kubeconfig": "", "namespace": "", "labels": {}, "profile": ULTRA, "config_hash": digest, "seconds": 60}
    record.ActionModule.__new__(record.ActionModule)._good(
        {**told, "policy": policy, "transport": "", "memory": {}}, {}
    )
    return cluster, digest


@pytest.mark.parametrize("policy", ["refuse", "warn"])
def test_an_unchanged_profile_is_current_whatever_policy_it_was_served_with(
    monkeypatch: pytest.MonkeyPatch, policy: str
) -> None:
    cluster, digest = serve(monkeypatch, policy)
    told = status.summary(case.cluster(), cluster.pods({}), [], served.read(cluster))
    assert (told["config_hash"], told["proved"], told["current"]) == (digest, True, True)


def test_a_changed_profile_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, _ = serve(monkeypatch, "warn")
    changed = case.cluster().model_copy(update={"security_mode": "device-plugin"})
    assert status.summary(changed, cluster.pods({}), [], served.read(cluster))["current"] is False


def test_the_hash_of_what_is_rendered_is_what_its_pods_and_its_record_carry() -> None:
    rendered = case.render(ULTRA, force=True)
    sets = [item for item in rendered.objects if item["kind"] == "StatefulSet"]
    (record,) = [item for item in rendered.objects if item["metadata"]["name"].endswith("-record")]
    assert {item["metadata"]["annotations"][names.CONFIG_HASH] for item in sets} == {rendered.digest}
    assert json.loads(record["data"]["record.json"])["config_hash"] == rendered.digest
    assert len(sets) == len(rendered.case.launch.ranks)
