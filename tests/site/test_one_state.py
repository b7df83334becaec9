"""One state of a group: `sparkloom status` and the page tell the same of the same pods, whatever they are at."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from sparkloom import case
from sparkloom.onnode.now.picture import Applied, Look, picture
from sparkloom.render.manifests.names import PROFILE
from sparkloom.site import client, facts, status, status_fleet
from tests import inventories
from tests.fleet_cluster import FleetCluster

GLM, OSS = "nvidia--glm-5.3-flash-nvfp4", "openai--gpt-oss-120b"
PODS = ("glm-rank0-0", "glm-rank1-0", f"{OSS}-rank0-0")
SUPERVISED = ("loading", "engine", "down", "refused", "missing", "serving", "failed")
WAITS = ("ImagePullBackOff", "ContainerCreating", "CreateContainerConfigError", "CrashLoopBackOff")
THROWS = 200


class Unplanned:
    """What of the plan a state does not depend on, and costs a second."""

    problem = ""

    def __init__(self, *_: object) -> None: ...

    def digest(self, member: object) -> Any:
        return lambda record: None

    def alias(self, member: object) -> str:
        return ""

    def nodes(self, member: object) -> tuple[str, ...]:
        return ()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[bool, tuple[Path, list[Any], Mapping[str, Any]]]:
    """By whether glm is on demand: the site, what was applied, what the controller knows."""
    sites = {}
    for demand in (False, True):
        more = ", idle_minutes: 10" if demand else ""
        text = f"serve:\n  - {{profile: {GLM}, name: glm, alias: a{more}}}\n  - {{profile: {OSS}, alias: b}}\n"
        folder = inventories.serving(tmp_path_factory.mktemp("site"), text)
        objects = [item for name in ("glm", OSS) for item in case.render_group(name, folder, force=True).objects]
        sites[demand] = (folder, objects, facts.facts(folder, {}))
    return sites


def seen(cluster: FleetCluster, told: Mapping[str, Any]) -> dict[str, str]:
    """As the page has it, of the same pods."""
    pods = cluster.pods({})
    wanted: dict[str, int] = {}
    for one in cluster.engine_sets():
        label = one.metadata.labels[PROFILE]
        wanted[label] = wanted.get(label, 0) + one.spec.replicas
    applied = [Applied(str(record.get("group") or record["profile"]), record, {}) for record in cluster.records()]
    supervisors = {pod.metadata.name: cluster.told(pod.metadata.name) for pod in pods}
    nodes = {name: {**node, "cordoned": False} for name, node in cluster.nodes().items()}
    look = Look(0.0, pods, applied, nodes, cluster.warnings(), supervisors, {}, {}, {}, wanted)
    return {one["name"]: one["state"] for one in picture(told, look)["groups"]}


def test_status_and_page_say_one_state(
    monkeypatch: pytest.MonkeyPatch, made: dict[bool, tuple[Path, list[Any], Mapping[str, Any]]]
) -> None:
    """On the old code: failed there where it was `starts` here, wakes where it was `down`."""
    monkeypatch.setattr(status, "_operation", lambda *_: None)
    monkeypatch.setattr(status, "Planned", Unplanned)
    met = set()
    for throw in range(THROWS):
        dice = random.Random(throw)
        folder, objects, told = made[dice.random() < 0.5]
        cluster = FleetCluster(objects)
        cluster.lost = [pod for pod in PODS if dice.random() < 0.25]
        cluster.ill = [pod for pod in PODS if dice.random() < 0.5]
        cluster.waiting = {pod: dice.choice(WAITS) for pod in PODS if dice.random() < 0.2}
        cluster.supervisors = {pod: {"phase": dice.choice(SUPERVISED)} for pod in PODS if dice.random() < 0.6}
        cluster.asleep = ["glm"] if dice.random() < 0.2 else []
        if dice.random() < 0.1:
            cluster.objects = [item for item in objects if item["kind"] != "StatefulSet"]
        monkeypatch.setattr(client, "of", lambda _, there=cluster: there)
        here = {one["name"]: one["state"] for one in status.status(folder)["groups"]}
        assert here == seen(cluster, told), f"throw {throw}"
        met |= set(here.values())
    assert met == set(status_fleet.STATES) - {"gone"}, "the dice met every state of a group in the list"
