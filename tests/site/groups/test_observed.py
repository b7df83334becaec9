"""What runs on a site, as its cluster tells it, and a plan that leaves it there."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from sparkloom import case
from sparkloom.inputs import inventory
from sparkloom.inputs.cluster import Cluster
from sparkloom.launch.groups import Running
from sparkloom.render.manifests.names import PROFILE, RANK
from sparkloom.site import client
from sparkloom.site.groups import observed
from tests import inventories

GLM, OSS = "nvidia--glm-5.3-flash-nvfp4", "openai--gpt-oss-120b"


class Cluster_:
    """A cluster in which these objects were applied and became pods; `gone`: labels of those that have none."""

    def __init__(
        self, objects: list[dict[str, Any]], gone: tuple[str, ...] = (), asleep: tuple[str, ...] = (), proved: str = ""
    ) -> None:
        self.objects, self.gone, self.asleep, self.proved = objects, gone, asleep, proved

    def config_map(self, name: str) -> dict[str, str]:
        assert name == "served", "that of a site with one profile, whose names it has"
        return {"served.json": json.dumps({"config_hash": self.proved})}

    def records(self) -> list[dict[str, Any]]:
        maps = [item for item in self.objects if item["kind"] == "ConfigMap"]
        return [json.loads(item["data"]["record.json"]) for item in maps if "record.json" in item.get("data", {})]

    def engine_sets(self) -> list[Any]:
        templates = [item["spec"]["template"] for item in self.objects if item["kind"] == "StatefulSet"]
        return [self._set(one) for one in templates if one["metadata"]["labels"][PROFILE] not in self.gone]

    def stops(self) -> dict[str, str]:
        return {}

    def _set(self, template: dict[str, Any]) -> Any:
        volumes = [
            SimpleNamespace(
                name=volume["name"],
                secret=SimpleNamespace(secret_name=volume["secret"]["secretName"]) if "secret" in volume else None,
            )
            for volume in template["spec"]["volumes"]
        ]
        labels = template["metadata"]["labels"]
        assert {PROFILE, RANK} <= set(labels)
        pod = SimpleNamespace(volumes=volumes, node_selector=template["spec"]["nodeSelector"])
        replicas = 0 if labels[PROFILE] in self.asleep else 1
        made = SimpleNamespace(template=SimpleNamespace(spec=pod), replicas=replicas)
        return SimpleNamespace(metadata=SimpleNamespace(labels=labels, annotations={}), spec=made)


def asked(monkeypatch: pytest.MonkeyPatch, cluster: Cluster, *applied: dict[str, Any], **state: Any) -> Any:
    monkeypatch.setattr(client, "of", lambda _: Cluster_(list(applied), **state))
    return observed.running(cluster)


def test_one_that_sleeps_runs_with_the_hash_of_its_last_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    rendered = case.render(GLM, force=True)
    cluster = inventory.load()
    awake = asked(monkeypatch, cluster, *rendered.objects, proved="one")[GLM]
    assert awake.awake and awake.whole and awake.proved == "", "nobody asks for it"
    asleep = asked(monkeypatch, cluster, *rendered.objects, asleep=(GLM,), proved="one")[GLM]
    assert (asleep.awake, asleep.whole, asleep.proved, asleep.config_hash) == (False, True, "one", rendered.digest)
    lost = [item for item in rendered.objects if not str(item["metadata"]["name"]).endswith("rank1")]
    assert not asked(monkeypatch, cluster, *lost, asleep=(GLM,))[GLM].whole


def test_one_profile_as_it_is_served_today_is_known_and_stays(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    """Before any list was written: its Sparks, its function, its names."""
    runs = asked(monkeypatch, inventory.load(), *case.render(GLM, force=True).objects)
    assert runs == {GLM: Running(GLM, GLM, ("spark1", "spark2"), 0, only=True)}
    site = inventories.serving(tmp_path, f"serve:\n  - {OSS}\n  - {GLM}\n")
    told = case.fleet(site, runs=runs).as_dict()["groups"]
    assert [(one["state"], one["nodes"]) for one in told] == [("new", ["spark3"]), ("stays", ["spark1", "spark2"])]
    assert [one["secrets"]["engine_key"] for one in told] == [f"{OSS}-engine-key", "engine-own-key"]


def test_what_a_plan_renders_is_what_it_finds_running(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    text = f"""\
serve:
  - {{profile: {GLM}, name: one, alias: one, nodes: [spark4, spark2]}}
  - {{profile: radixark--qwen3.8-27b-nvfp4--2node, name: pair, alias: pair, fraction: 0.4}}
  - {{profile: radixark--qwen3.8-27b-nvfp4--2node, name: twin, alias: twin, fraction: 0.4, nodes: [spark1, spark3]}}
"""
    site = inventories.serving(tmp_path, text, fabric=("vfs_per_rail: 2", "vfs_per_rail: 4"))
    plan = case.fleet(site)
    objects = [item for name in ("one", "pair", "twin") for item in case.render_group(name, site, force=True).objects]
    runs = asked(monkeypatch, plan.cluster, *objects)
    for one in plan.grouped:
        group = one.group
        assert runs[group.name] == Running(
            group.name, group.profile, group.nodes, group.vf, fraction=group.fraction, only=group.only
        )
    again = case.fleet(site, runs=runs)
    assert {one.group.state for one in again.grouped} == {"stays"}
    assert [one.group for one in again.grouped] == [one.group for one in plan.grouped]


def test_a_record_without_pods_is_of_what_was(monkeypatch: pytest.MonkeyPatch) -> None:
    assert asked(monkeypatch, inventory.load(), *case.render(OSS, force=True).objects, gone=(OSS,)) == {}
