"""The waker's objects: what it may scale, whom it reaches, and what makes another pod."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from sparkloom.inputs import inventory, serving
from sparkloom.inputs.cluster import Cluster
from sparkloom.launch import patience
from sparkloom.launch.groups import Running
from sparkloom.onnode.waker.state import Group, GroupsFile
from sparkloom.render import keys, manifests
from sparkloom.render.manifests import names
from sparkloom.render.manifests import waker as objects
from sparkloom.site import waker
from tests import golden_files, inventories
from tests.render.manifests import case, schemas

LIST = """\
serve:
  - nvidia--glm-5.3-flash-nvfp4
  - {profile: radixark--qwen3.8-27b-nvfp4, name: chat, alias: qwen, fraction: 0.42, idle_minutes: 15}
  - {profile: openai--gpt-oss-120b, nodes: [spark4], idle_minutes: 60}
"""
IMAGE = "docker.io/library/python:3.13"
API = [("10.43.0.1", 443), ("fd00::11", 6443)]
RUNS = {
    "nvidia--glm-5.3-flash-nvfp4": Running("nvidia--glm-5.3-flash-nvfp4", "", ("spark1", "spark2")),
    "chat": Running("chat", "", ("spark3",)),
}


def site(folder: Path) -> tuple[Cluster, list[Group]]:
    where = inventories.serving(folder, LIST)
    cluster = inventory.load(where)
    return cluster, waker.groups(serving.load(where, cluster), cluster, RUNS)


def rendered(folder: Path) -> list[dict[str, Any]]:
    cluster, found = site(folder)
    return objects.waker(IMAGE, cluster, found, API)


def one(built: list[dict[str, Any]], kind: str, name: str = "waker") -> dict[str, Any]:
    return next(item for item in built if (item["kind"], item["metadata"]["name"]) == (kind, name))


def test_golden_waker(tmp_path: Path) -> None:
    built = [item for item in rendered(tmp_path) if "binaryData" not in item]
    one(built, "Deployment")["spec"]["template"]["metadata"]["annotations"][names.CONFIG_HASH] = "of its program"
    golden_files.check("waker-of-one", "objects.yaml", manifests.to_yaml(built))


@pytest.mark.parametrize("release", schemas.RELEASES)
def test_objects_fit_their_kinds(tmp_path: Path, release: str) -> None:
    read = yaml.safe_load_all(manifests.to_yaml(rendered(tmp_path)))
    assert [text for item in read for text in schemas.problems(item, release)] == []


def test_groups_on_demand_that_are_set_up_are_told_as_the_program_reads_them(tmp_path: Path) -> None:
    _, (chat,) = site(tmp_path / "site")  # oss is not set up, glm not on demand
    assert (chat.name, chat.model, chat.address) == ("chat", "qwen", "chat.sparkloom.svc.cluster.local")
    assert (chat.sets, chat.idle_seconds, chat.turn) == (("chat-rank0",), 900.0, "")
    assert chat.limit_seconds == patience.wait_seconds(chat.load_seconds)
    file = tmp_path / "groups.json"
    file.write_text(one(rendered(tmp_path / "again"), "ConfigMap", "waker-groups")["data"]["groups.json"])
    assert GroupsFile(file).new() == (chat,)


def test_the_last_proved_start_says_how_long_one_takes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, found = site(tmp_path)
    asked: list[str] = []
    monkeypatch.setattr(waker.records, "read", lambda reached, name: asked.append(name) or {"ready_seconds": 488.2})
    (chat,) = waker.timed(keeping({}), found, RUNS)
    assert (chat.load_seconds, asked) == (488.2, ["chat-served"])
    monkeypatch.setattr(waker.records, "read", lambda reached, name: {})
    assert waker.timed(keeping({}), found, RUNS) == found


def test_the_router_is_known_by_the_key_of_the_group_s_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, found = site(tmp_path)
    monkeypatch.setattr(waker.records, "read", lambda reached, name: {})
    (chat,) = waker.timed(keeping({RUNS["chat"].engine_key: {keys.BARE_FILE: "sk-own"}}), found, RUNS)
    assert chat.proof == hashlib.sha256(b"sk-own").hexdigest()


def keeping(secrets: dict[str, dict[str, str]]) -> Any:
    """A cluster of which only these Secrets are asked."""
    return SimpleNamespace(secret=secrets.get)


def test_it_scales_the_sets_on_demand_and_changes_nothing_else(tmp_path: Path) -> None:
    built = rendered(tmp_path)
    rules = one(built, "Role")["rules"]
    changes = [rule for rule in rules if not set(rule["verbs"]) <= {"get", "list"}]
    assert changes == [
        {"apiGroups": ["apps"], "resources": ["statefulsets/scale"], "verbs": ["patch"],
         "resourceNames": ["chat-rank0"]},
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get", "update"],
         "resourceNames": ["waker"]},
    ]  # fmt: skip
    assert {kind for rule in rules for kind in rule["resources"]} == {
        "pods", "configmaps", "statefulsets", "statefulsets/scale", "leases",
    }  # fmt: skip
    assert [rule["resourceNames"] for rule in rules if "configmaps" in rule["resources"]] == [["stopped"]]
    assert not case.of_kind(built, "ClusterRole")


def test_its_pod_may_nothing(tmp_path: Path) -> None:
    spec = one(rendered(tmp_path), "Deployment")["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    assert spec["securityContext"]["runAsNonRoot"] and container["securityContext"] == {
        "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]},
    }  # fmt: skip
    assert all("configMap" in volume for volume in spec["volumes"]), "no Secret, no folder of the node"
    assert all("subPath" not in mount for mount in container["volumeMounts"]), "a file that changes is seen"


def test_another_list_makes_no_other_pod_and_another_program_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster, found = site(tmp_path)
    first = one(objects.waker(IMAGE, cluster, found, API), "Deployment")
    more = [*found, replace(found[0], name="more", sets=("more-rank0",))]
    assert one(objects.waker(IMAGE, cluster, more, API), "Deployment") == first
    real = objects.pack.program
    monkeypatch.setattr(objects.pack, "program", lambda name: replace(real(name), stamp="another"))
    assert one(objects.waker(IMAGE, cluster, found, API), "Deployment") != first


def test_its_lease_says_nothing_that_would_be_applied_over_who_holds_it(tmp_path: Path) -> None:
    assert "spec" not in one(rendered(tmp_path), "Lease")


def test_map_is_far_from_what_an_object_may_be(tmp_path: Path) -> None:
    assert all(len(json.dumps(item)) < 500_000 for item in case.of_kind(rendered(tmp_path), "ConfigMap"))
