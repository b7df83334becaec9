"""Which digest all nodes launch: who pulls, who differs, and how a person says which one."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from sparkloom import case
from sparkloom.base.errors import InputError
from sparkloom.inputs import inventory, lock_file
from sparkloom.inputs.lock_file import Image
from sparkloom.render.manifests.names import PROFILE
from sparkloom.site import client, images
from sparkloom.site.store import follow
from sparkloom.site.tasks import image
from tests.fleet_cluster import FleetCluster
from tests.inventories import OSS
from tests.places import REPO

IMAGE, NAME = "scitrera/dgx-spark-sglang:0.5.12", "docker.io/scitrera/dgx-spark-sglang"
A, B = (f"sha256:{letter * 64}" for letter in "ab")
LOCKED = Image("scitrera/dgx-spark-sglang", "0.5.12", A, "2026-11-22T15:00:00+00:00", "spark1")


def held(**tags: str) -> dict[str, dict[str, Any]]:
    return {node: {"tag": tag, "digests": [tag] if tag else []} for node, tag in tags.items()}


def decided(nodes: Mapping[str, Any], *, lock: bool = False, take: str = "", pull: bool = True) -> images.Decision:
    known = {LOCKED.of: LOCKED} if lock else {}
    return images.decide(images.wanted(IMAGE, known, take, "images.yml"), nodes, may_pull=pull)


def test_the_first_run_pulls_the_tag_on_all_nodes_and_who_has_it_decides_for_the_others() -> None:
    none = decided(held(spark1="", spark2=""))
    assert none == images.Decision("", {"spark1": f"{NAME}:0.5.12", "spark2": f"{NAME}:0.5.12"})
    one = decided(held(spark1="", spark2=A))
    assert one == images.Decision(A, {"spark1": f"{NAME}@{A}"}), "the tag may have moved since"
    assert decided(held(spark1=A, spark2=A)) == images.Decision(A), "nothing is pulled that is there"


def test_two_nodes_that_differ_are_refused_with_the_way_out() -> None:
    told = decided(held(spark1=A, spark2=B, spark3=A))
    assert f"not the same on every node: {A} on spark1, spark3; {B} on spark2" in told.refusal
    assert f"-e serve_image={A} or -e serve_image={B}" in told.refusal
    assert decided(held(spark1=A, spark2=B, spark3=A), take=B) == images.Decision(
        B, {"spark1": f"{NAME}@{B}", "spark3": f"{NAME}@{B}"}
    )


def test_two_runs_that_differ_are_refused_with_the_way_out() -> None:
    told = decided(held(spark1=B, spark2=B), lock=True)
    assert f"{IMAGE} is locked as {A} (2026-11-22T15:00:00+00:00, found on spark1; images.yml)" in told.refusal
    assert f"its tag now means {B} on spark1, spark2" in told.refusal
    assert f"-e serve_image={A} or -e serve_image={B}" in told.refusal
    assert decided(held(spark1=B, spark2=B), lock=True, take="new") == images.Decision(B)


def test_a_node_that_has_nothing_pulls_what_is_locked_not_what_the_tag_means_today() -> None:
    assert decided(held(spark1=A, spark2=""), lock=True) == images.Decision(A, {"spark2": f"{NAME}@{A}"})
    assert decided(held(spark1="", spark2=""), lock=True).pulls == {"spark1": f"{NAME}@{A}", "spark2": f"{NAME}@{A}"}


def test_without_a_way_out_every_node_that_lacks_the_image_is_named_at_once() -> None:
    told = decided(held(spark1=A, spark2="", spark3=""), pull=False)
    assert f"{NAME}@{A} is missing on spark2, spark3" in told.refusal and "images import FILE" in told.refusal
    assert decided(held(spark1=A), pull=False) == images.Decision(A)


def test_a_tag_that_moved_between_two_pulls_is_refused_after_them() -> None:
    asked = images.wanted(IMAGE, {}, "", "images.yml")
    assert images.settle(asked, images.Decision(), held(spark1=A, spark2=A)) == images.Decision(A)
    assert "not the same on every node" in images.settle(asked, images.Decision(), held(spark1=A, spark2=B)).refusal
    assert "missing on spark2" in images.settle(asked, images.Decision(A), held(spark1=A, spark2=B)).refusal


def test_a_profile_s_own_digest_is_no_matter_of_tags_or_locks() -> None:
    asked = images.wanted(f"{IMAGE}@{B}", {LOCKED.of: LOCKED}, "", "images.yml")
    assert images.decide(asked, held(spark1=A), may_pull=True) == images.Decision(B, {"spark1": f"{NAME}@{B}"})


@pytest.mark.parametrize("take", ["latest", "sha256:12", B + "0"])
def test_a_word_that_names_no_digest_is_refused(take: str) -> None:
    with pytest.raises(InputError, match="neither a digest"):
        decided({}, take=take)


def test_the_lock_is_a_file_of_the_site_and_launches_name_its_digest(tmp_path: Path) -> None:
    site = tmp_path / "home"
    (site / "group_vars/all").mkdir(parents=True)
    shipped = REPO / "inventories/gb10"
    for name in ("hosts.yml", "group_vars/all/cluster.yml", "group_vars/all/fabric.yml"):
        (site / name).write_bytes((shipped / name).read_bytes())
    profile = "nvidia--nemotron-3-ultra-550b-a55b-nvfp4"
    before = case.render(profile, site, force=True)
    file = lock_file.place(site)
    assert lock_file.keep(file, LOCKED) and not lock_file.keep(file, LOCKED)
    after = case.render(profile, site, force=True)
    pods = [item for item in after.objects if item["kind"] == "StatefulSet"]
    found = {pod["spec"]["template"]["spec"]["containers"][0]["image"] for pod in pods}
    assert found == {f"{IMAGE}@{A}"} and len(pods) == 4
    assert before.digest != after.digest, "another image is another configuration"
    assert yaml.safe_load(file.read_text())["image_lock"] == [
        {"name": "scitrera/dgx-spark-sglang", "tag": "0.5.12", "digest": A, "when": LOCKED.when, "node": "spark1"}
    ]
    lint = [sys.executable, "-m", "yamllint", "--strict", "-c", REPO / ".yamllint", file]
    checked = subprocess.run(lint, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout


def test_the_lock_keeps_other_images_and_renews_one(tmp_path: Path) -> None:
    file = tmp_path / "images.yml"
    other = Image("vllm/vllm-openai", "v0.19.0", B, "2026", "spark2")
    assert lock_file.keep(file, LOCKED) and lock_file.keep(file, other)
    assert lock_file.keep(file, Image("docker.io/scitrera/dgx-spark-sglang", "0.5.12", B, "2027", "spark3"))
    assert lock_file.meanings(file, lock_file.Image) == {f"{NAME}:0.5.12": B, "docker.io/vllm/vllm-openai:v0.19.0": B}
    assert lock_file.at(IMAGE, lock_file.meanings(file, lock_file.Image)) == f"{IMAGE}@{B}"
    assert lock_file.at("other:1", lock_file.meanings(file, lock_file.Image)) == "other:1"


@pytest.mark.parametrize(
    "text", ["image_lock: 7", "[]", "image_lock: [{name: a, tag: b, digest: c, when: d, node: e}]"]
)
def test_a_lock_that_is_none_is_refused_by_name(text: str, tmp_path: Path) -> None:
    file = tmp_path / "images.yml"
    file.write_text(text)
    with pytest.raises(InputError, match=r"images\.yml.*(expected|no digest)"):
        lock_file.meanings(file, lock_file.Image)


def test_the_inventory_s_lock_reaches_the_action_plugins_too() -> None:
    vars_ = {"cluster": {"name": "x"}, "fabric": {"rails": []}, "nodes": [{"name": "a"}], "images": {f"{NAME}:1": A}}
    assert inventory.from_vars(vars_).images == {f"{NAME}:1": A}


def test_a_pull_has_a_clock_of_its_own_and_is_left_at_work() -> None:
    moving = {"state": "moving", "have": 5 * 10**9, "total": 20 * 10**9, "moved": 5 * 10**9}
    times = iter([0.0, 10.0, 7300.0])
    ask = follow.Clock(7200, now=lambda: next(times)).on(lambda: moving)
    assert ask()["state"] == "moving"
    late = ask()
    assert late["state"] == "failed"
    words = follow.pulled("spark2", "x:1", late, 7300)
    assert words.startswith("spark2: x:1: not here after 2 h 0 min (") and "the pull goes on: run this again" in words


def test_a_pull_that_failed_names_image_node_cause_and_the_way_without_a_registry() -> None:
    words = follow.pulled("spark2", "x:1", {"state": "failed", "cause": "dial tcp: no route to host"}, 3)
    assert words.startswith("spark2: x:1 cannot be pulled: dial tcp: no route to host. Without a way out")
    assert "images import FILE` on spark2" in words


def test_a_group_that_is_stopped_or_sleeps_keeps_its_image(monkeypatch: pytest.MonkeyPatch) -> None:
    objects = case.render(OSS, force=True).objects
    cluster = FleetCluster(objects)
    monkeypatch.setattr(client, "of", lambda _: cluster)
    asked: list[dict[str, Any]] = []
    monkeypatch.setattr(
        image.Remote, "of", lambda *_: SimpleNamespace(ask=lambda _, told: asked.append(told) or {"changed": []})
    )
    there: Any = SimpleNamespace(cluster=None)
    (mine,) = {one.spec.template.spec.containers[0].image for one in cluster.engine_sets()}
    cluster.stopped = {cluster.engine_sets()[0].metadata.labels[PROFILE]: "anna"}
    assert cluster.pods({}) == [] and image.release(there)["changed"] is False
    cluster.objects = []
    image.release(there, [{"socket": "/s"}])
    assert asked == [
        {"images": [mine], "places": list(images.PLACES)}, {"images": [], "places": [{"socket": "/s"}]}
    ]  # fmt: skip
