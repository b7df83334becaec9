"""What is served, beside what would be rendered now: pods as the cluster shows them, a record as a start writes it."""

from __future__ import annotations

import json
import time
from types import SimpleNamespace as NS
from typing import Any

import pytest

from sparkloom import case
from sparkloom.onnode.host_metrics import disks, main
from sparkloom.onnode.now import picture, pods
from sparkloom.onnode.now.groups import Look, Observed
from sparkloom.onnode.now.labels import HOSTS
from sparkloom.render.manifests import names
from sparkloom.site import status
from sparkloom.site.groups import proof
from sparkloom.site.groups.group import RenderedGroup
from tests.fleet_cluster import FleetCluster, installed

ULTRA = "nvidia--nemotron-3-ultra-550b-a55b-nvfp4"


def serve(monkeypatch: pytest.MonkeyPatch, policy: str = "refuse", transport: str = "") -> tuple[FleetCluster, str]:
    """A site on which a group was applied with a policy and proved."""
    rendered = case.render(ULTRA, force=True, policy=policy)
    cluster = FleetCluster(rendered.objects)
    installed(cluster, monkeypatch)
    monkeypatch.setattr(status, "_operation", lambda *_: None)
    monkeypatch.setattr(proof.leftovers, "take", lambda reached, mine: [])
    given: Any = (cluster, RenderedGroup(rendered, policy), None, print, print)
    proof.Proof(*given)._record("served", transport, 60.0, {}, ())
    return cluster, rendered.digest


@pytest.mark.parametrize("policy", ["refuse", "warn"])
def test_an_unchanged_profile_is_current_whatever_policy_it_was_served_with(
    monkeypatch: pytest.MonkeyPatch, policy: str
) -> None:
    _, digest = serve(monkeypatch, policy)
    told = status.status()
    assert (told["config_hash"], told["proved"], told["current"]) == (digest, True, True)


def test_a_changed_profile_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    serve(monkeypatch, "warn")
    changed = case.cluster().model_copy(update={"security_mode": "device-plugin"})
    assert status.status(changed)["current"] is False


def test_the_hash_of_what_is_rendered_is_what_its_pods_and_its_record_carry() -> None:
    rendered = case.render(ULTRA, force=True)
    sets = [item for item in rendered.objects if item["kind"] == "StatefulSet"]
    (record,) = [item for item in rendered.objects if item["metadata"]["name"].endswith("-record")]
    assert {item["metadata"]["annotations"][names.CONFIG_HASH] for item in sets} == {rendered.digest}
    assert json.loads(record["data"]["record.json"])["config_hash"] == rendered.digest
    assert len(sets) == len(rendered.case.launch.ranks)


def test_a_rail_without_a_carrier_is_named_and_nobody_says_roce_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    """On the old code: `rails: roce: every rank`, and `ready, NCCL transport roce` beside it."""
    cluster, _ = serve(monkeypatch, transport="roce: every rank")
    told = {"rails": [], "transport": "NCCL transport roce: 4 HCAs", "epoch": 3}
    cluster.supervisors = dict.fromkeys((pod.metadata.name for pod in cluster.pods({})), told)
    assert "rails: roce: every rank" in status.text(status.status())
    broken = {**told, "rails": ["rail b: net2 has no carrier: cable"]}
    cluster.supervisors[next(name for name in cluster.supervisors if "rank1" in name)] = broken
    now = status.status()
    assert now["transport"] is None and now["rails"] == ["rank 1 on spark2: rail b: net2 has no carrier: cable"]
    text = status.text(now)
    assert "rail b: net2 has no carrier" in text and "roce: every rank" not in text and text.count("roce") == 3


@pytest.mark.parametrize(
    ("heard", "why"),
    [
        ({"spark4": "2026-11-26T12:03:05.000000Z"}, "its node spark4 says nothing since 2026-11-26T12:03:05+00:00: is"),
        ({}, "its supervisor does not answer"),  # it was on ten seconds ago
    ],
)
def test_a_node_that_is_off_is_named_before_kubernetes_knows_and_its_rank_is_not_ready(
    monkeypatch: pytest.MonkeyPatch, heard: dict[str, str], why: str
) -> None:
    """`status` took 32 s, in which the API server waited for the node's kubelet, and called its rank ready."""
    cluster, _ = serve(monkeypatch)
    names = sorted(pod.metadata.name for pod in cluster.pods({}))
    begins = {"serving": False, "phase": "peers", "text": "waits", "epoch": 3}
    ended = {"epoch": 3, "why": "rank 3 on spark4 is gone: no word for 10 s", "at": 7.0}
    cluster.supervisors = {name: begins | {"ended": ended} for name in names if "rank3" not in name}
    cluster.heard = heard
    spoken = cluster.ask

    def ask(pod: Any, port: int, path: str) -> bytes:
        if "rank3" in pod.metadata.name:
            time.sleep(30)
        return spoken(pod, port, path)

    monkeypatch.setattr(cluster, "ask", ask)
    begun = time.monotonic()
    shown = status.status()
    assert time.monotonic() - begun < 5
    assert [(rank["state"], rank["ready"]) for rank in shown["ranks"][2:]] == [("ready", True), ("silent", False)]
    text = status.text(shown)
    assert why in text
    assert not shown["serving"] and "epoch 3 ended: rank 3 on spark4 is gone: no word for 10 s" in text


def test_a_disk_that_fills_and_a_clock_that_is_off_are_told_beside_the_group(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, _ = serve(monkeypatch)
    exporter = {"metadata": {"name": "hosts", "labels": dict(HOSTS)}, "spec": {"nodeName": "spark3"},
                "status": {"phase": "Running"}}  # fmt: skip
    ranks, spoken, asked = cluster.api, cluster.ask, []

    def api(path: str, query: Any, accept: str) -> Any:
        if path.endswith("/leases"):
            meta = {"name": "spark1", "managedFields": [{"time": "2026-11-26T12:00:00Z"}]}
            return {"items": [{"metadata": meta, "spec": {"renewTime": "2026-11-26T11:00:00.000000Z"}}]}
        mine = (
            path.endswith("/pods")
            and HOSTS.items() <= dict(pair.split("=") for pair in query["labelSelector"].split(",")).items()
        )
        return {"items": [exporter]} if mine else ranks(path, query, accept)

    def ask(pod: Any, port: int, path: str) -> bytes:
        if pod.metadata.name != "hosts":
            return spoken(pod, port, path)
        asked.append(path)
        told = [(disks.FREE[0], {"folder": "/var/lib"}, 512.0 * 2**20), (main.WRITTEN.name, {}, time.time())]
        return main.page(told).encode()

    monkeypatch.setattr(cluster, "api", api)
    monkeypatch.setattr(cluster, "ask", ask)
    shown = status.status()
    assert shown["serving"] and len(asked) == 1, "neither is the group's own state"
    assert shown["problems"] == status.text(shown).splitlines()[-2:] == [
        "spark3: 0.5 GiB free on the file system of /var/lib",
        "spark1: its clock is 3,600 s behind the cluster's; timedatectl set-ntp true on it",
    ]  # fmt: skip


def test_a_rank_that_is_only_slow_to_say_so_is_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    """A node at load 60 answers late; rank 0, which hears it every second, says that the group serves."""
    cluster, _ = serve(monkeypatch)
    serves = {"serving": True, "phase": "serving", "epoch": 1}
    cluster.supervisors = {pod.metadata.name: serves for pod in cluster.pods({})[:3]}
    assert status.status()["serving"]


def test_a_profile_that_is_asked_about_serves_or_not(monkeypatch: pytest.MonkeyPatch) -> None:
    serve(monkeypatch)
    assert status.status(profile=ULTRA)["serving"] and status.status()["serving"]
    other = status.status(profile="y")
    words = f"y does not serve, {ULTRA} is there; playbooks/switch.yml -e profile=y changes to it"
    assert not other["serving"] and words in status.text(other)


def pod(rank: int, **more: Any) -> Any:
    engine = NS(state=NS(waiting=more.get("waiting"), terminated=None), ready=False, restart_count=0, last_state=None)
    return NS(
        metadata=NS(name=f"x-rank{rank}-0", uid="u", labels={names.RANK: str(rank)}, annotations={}),
        spec=NS(node_name=f"spark{rank + 1}", node_selector={}, containers=[NS(image="registry/sglang:1")]),
        status=NS(phase=more.get("phase", "Pending"), container_statuses=[engine], conditions=[]),
    )


def ranks(look: Look, planned: Any = ()) -> list[dict[str, Any]]:
    """Of a group that has all pods of a look."""
    one = Observed("x", "x", {}, True, {"ranks": planned}, {}, "x-served", look.pods)
    return list(picture.group(one, look, {})["ranks"])


def test_a_rank_without_a_pod_is_listed_and_a_pod_that_waits_says_why() -> None:
    """On the old code two ranks were listed, one as `ContainerCreating`."""
    missing = "cannot find a network-attachment-definition (rail-a-vf0) in namespace (sparkloom)"
    away = {"x-rank0-0": missing, "x-rank2": "create Pod x-rank2-0 failed: forbidden: exceeded quota"}
    nodes = {f"spark{n}": {"ready": n != 2} for n in (1, 2, 3)}
    creating = NS(reason="ContainerCreating", message="")
    planned = [{"rank": n, "node": f"spark{n + 1}"} for n in range(3)]
    there = [pod(0, waiting=creating), pod(1, waiting=creating)]
    seen = ranks(Look(pods=there, warnings=away, nodes=nodes), planned)
    assert [(rank["rank"], rank["state"]) for rank in seen] == [
        ("0", "ContainerCreating"), ("1", "ContainerCreating"), ("2", "no pod"),
    ]  # fmt: skip
    assert seen[0]["cause"] == "the attachment rail-a-vf0 is not in the cluster; playbooks/network.yml makes it"
    assert "its node spark2 is not Ready" in seen[1]["cause"] and "exceeded quota" in seen[2]["cause"]


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ('MountVolume.SetUp failed for volume "supervisor" : configmap "x-rank" not found', "the ConfigMap x-rank is"),
        ('MountVolume.SetUp failed for volume "key" : secret "engine-key" not found', "the Secret engine-key is"),
        ('plugin type="host-device" failed (add): failed to find host device: Link not found', "not on spark1"),
        (
            'error adding: network-attachment-definitions.k8s.cni.cncf.io "rail-b-vf0" not found',
            "attachment rail-b-vf0",
        ),
    ],
)
def test_what_events_say_is_put_into_words(told: str, words: str) -> None:
    assert words in pods.explained(told, "spark1") and "playbooks/" in pods.explained(told, "spark1")


def test_an_image_that_does_not_come_is_named_with_its_node() -> None:
    waits = pods.waits(pod(0, waiting=NS(reason="ImagePullBackOff", message="Back-off pulling")), {}, {})
    assert waits.startswith("its image registry/sglang:1 does not come to spark1: Back-off pulling")


def test_the_cause_of_an_epoch_that_is_over_says_so() -> None:
    """On the old code it was told as today's while the group met again."""
    told = {"phase": "peers", "cause": "the engine ended with status 1", "cause_phase": "failed", "cause_epoch": 4}
    look = Look(pods=[pod(0, phase="Running")], reports={"x-rank0-0": told})
    (seen,) = ranks(look)
    assert seen["cause"] == "epoch 4 ended: the engine ended with status 1"
    told |= {"cause": "stays down: failed 6 times", "cause_phase": "down"}
    (seen,) = ranks(look)
    assert seen["cause"] == "stays down: failed 6 times"
