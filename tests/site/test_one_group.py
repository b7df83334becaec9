"""What ends with one group of several, and what stays because it is the site's or another group's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sparkloom import case
from sparkloom.base.errors import InputError
from sparkloom.launch import fabric
from sparkloom.render.manifests import pod
from sparkloom.site import one_group
from tests import inventories
from tests.fleet_cluster import FleetCluster, installed

OSS, QWEN = "openai--gpt-oss-120b", "radixark--qwen3.8-27b-nvfp4--2node"
PAIRS = "".join(
    f"  - {{profile: {QWEN}, name: {name}, alias: {name}, fraction: 0.4, nodes: [spark1, spark3]}}\n"
    for name in ("one", "two")
)


class Site:
    """Two groups of two ranks on the same Sparks, and one of one rank, all of them served."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        text = f"serve:\n{PAIRS}  - {OSS}\n"
        self.folder = inventories.serving(folder, text, fabric=("vfs_per_rail: 2", "vfs_per_rail: 4"))
        self.site = case.cluster(self.folder)
        names = ("one", "two", OSS)
        self.objects = {name: case.render_group(name, self.folder, force=True).objects for name in names}
        self.cluster = FleetCluster([item for objects in self.objects.values() for item in objects])
        self.cluster.prove("served", self.objects["one"])
        self.cluster.prove("two-served", self.objects["two"])
        installed(self.cluster, monkeypatch)

    def to_end(self, word: str) -> dict[str, Any]:
        return one_group.to_end(self.site, self.folder, word)


def test_only_the_group_s_own_functions_are_waited_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Those of the group beside it on the same Sparks stay in its pods."""
    site = Site(tmp_path, monkeypatch)
    told = {name: site.to_end(name)["functions"] for name in ("one", "two", OSS)}
    assert [bool(told["one"][node]) for node in ("spark1", "spark2", "spark3", "spark4")] == [True, False, True, False]
    seen = {name: {f["interface"] for f in told[name]["spark1"]} for name in ("one", "two")}
    assert len(seen["one"]) == len(site.site.fabric.rails) and not seen["one"] & seen["two"]
    assert {e.interface for e in fabric.plan(site.site).of("spark1", site.site.fabric.serving_vf)} == seen["one"]
    assert not any(told[OSS].values()), "one rank has no function"


def test_the_kernels_are_those_that_its_pods_have(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    site = Site(tmp_path, monkeypatch)
    sets = [item for item in site.objects["two"] if item["kind"] == "StatefulSet"]
    mounted = {v["hostPath"]["path"] for v in sets[0]["spec"]["template"]["spec"]["volumes"] if "hostPath" in v}
    kernels = site.to_end("two")["kernels"]
    assert set(kernels) <= mounted and len(kernels) == 2 and site.site.model_store not in kernels
    assert not set(kernels) & set(site.to_end("one")["kernels"])


def test_its_record_of_a_proof_goes_whatever_that_is_called(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    site = Site(tmp_path, monkeypatch)
    assert site.to_end("one")["own"] == {"name": "one", "labels": ["one"], "also": [["ConfigMap", "served"]]}
    assert site.to_end("two")["own"]["also"] == [["ConfigMap", "two-served"]]
    assert site.to_end(OSS)["own"]["also"] == [], "another group's is not its own"


def test_a_group_that_is_in_no_list_ends_too_and_one_that_is_nowhere_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    site = Site(tmp_path, monkeypatch)
    site.folder = inventories.serving(tmp_path, f"serve: [{OSS}]\n", name="later")
    assert site.to_end("two")["own"]["name"] == "two"
    with pytest.raises(InputError, match="three: the site has no such group"):
        site.to_end("three")


def test_a_record_names_the_folder_of_its_kernels(tmp_path: Path) -> None:
    folder = inventories.serving(tmp_path, f"serve: [{{profile: {OSS}, name: chat}}]\n")
    launch = case.render_group("chat", folder, force=True).case.launch
    site = case.cluster(folder)
    assert pod.cache_of("chat", launch.image, site) == pod.cache_folder(launch, site)
