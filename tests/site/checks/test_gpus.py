"""Who offers GPUs: nobody yet, ours, or a device plugin that was there before."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sparkloom.base.finding import errors
from sparkloom.inputs import inventory, serving
from sparkloom.render.manifests import gpu
from sparkloom.site.checks import gpus

CLUSTER = inventory.load()
NODES = [node.kubernetes_node for node in CLUSTER.nodes]
OURS = {"namespace": gpu.NAMESPACE, "name": gpu.NAME, "image": "nvcr.io/nvidia/k8s-device-plugin:v0.18.2@sha256:0"}
SEVERAL = CLUSTER.model_copy(update={"several": True})  # with a list, `serve:`
OTHER = {"namespace": "gpu-operator", "name": "nvidia-device-plugin-daemonset", "image": "x/k8s-device-plugin:v0.17.4"}


def facts(count: int, *plugins: dict[str, str], classes: tuple[str, ...] = ("nvidia",)) -> dict[str, Any]:
    nodes = {name: {"ready": True, "gpus": count, "cordoned": False} for name in NODES}
    return {"nodes": nodes, "runtime_classes": list(classes), "plugins": list(plugins)}


@pytest.mark.parametrize(
    ("found", "needed", "told"),
    [
        (facts(0), True, "nobody offers GPUs yet"),
        (facts(1), False, "no DaemonSet"),
        (facts(1, OURS), True, "kube-system/sparkloom-gpu"),
        (facts(0, OURS), True, "kube-system/sparkloom-gpu"),
        (facts(1, OTHER), False, "gpu-operator/nvidia-device-plugin-daemonset (x/k8s-device-plugin:v0.17.4)"),
        (facts(0, OTHER), False, "was here before"),
    ],
)
def test_ours_is_installed_only_where_nobody_else_does_it(found: dict[str, Any], needed: bool, told: str) -> None:
    assert gpus.needed(CLUSTER, found) is needed
    assert told in gpus.who_offers(found)
    assert gpus.judge(CLUSTER, found, "nvidia") == []


def test_a_missing_runtime_class_is_refused_with_its_cure() -> None:
    (finding,) = gpus.judge(CLUSTER, facts(1, classes=("crun",)), "nvidia")
    assert "no 'nvidia' (there are: crun)" in finding.message and "restart K3s" in finding.fix


def test_an_old_plugin_and_time_slicing_and_a_node_of_another_name() -> None:
    old = {**OTHER, "image": "nvcr.io/nvidia/k8s-device-plugin:v0.17.1"}
    found = facts(4, old)
    found["nodes"].pop("spark4")
    findings = gpus.judge(CLUSTER, found, "nvidia")
    assert {finding.rule for finding in errors(findings)} == {"device plugin", "node"}
    assert [finding.where for finding in findings if finding.severity == "warning"] == ["spark1", "spark2", "spark3"]


def test_nodes_without_a_gpu_are_named() -> None:
    found = facts(1, OURS)
    found["nodes"]["spark3"]["gpus"] = 0
    (finding,) = gpus.missing(CLUSTER, found)
    assert finding.where == "spark3" and gpu.NAME in finding.fix


def test_a_site_with_a_list_offers_each_gpu_to_as_many_pods_as_a_list_has_groups() -> None:
    """Red before: each GPU was offered once, so that a second group on a Spark waited for ever."""
    (whole,), (shared,) = (gpu.device_plugin(site, "image", "nvidia") for site in (CLUSTER, SEVERAL))
    assert "annotations" not in whole["spec"]["template"]["metadata"]
    assert "CONFIG_FILE" not in str(whole) and [v["name"] for v in whole["spec"]["template"]["spec"]["volumes"]] == [
        "sockets"
    ]
    pod = shared["spec"]["template"]
    told = json.loads(pod["metadata"]["annotations"]["sparkloom/gpu-sharing"])
    assert told["version"] == "v1" and told["sharing"]["timeSlicing"] == {
        "renameByDefault": False,
        "failRequestsGreaterThanOne": True,
        "resources": [{"name": "nvidia.com/gpu", "replicas": serving.MOST}],
    }
    (container,) = pod["spec"]["containers"]
    (mount,) = (each for each in container["volumeMounts"] if each["name"] == "sharing")
    (volume,) = (each for each in pod["spec"]["volumes"] if each["name"] == "sharing")
    (item,) = volume["downwardAPI"]["items"]
    where = {each["name"]: each["value"] for each in container["env"]}["CONFIG_FILE"]
    assert where == f"{mount['mountPath']}/{item['path']}"
    assert item["fieldRef"]["fieldPath"] == "metadata.annotations['sparkloom/gpu-sharing']"


def test_it_is_waited_for_until_ours_offers_just_as_many_as_it_was_told() -> None:
    for site, right, wrong in ((SEVERAL, serving.MOST, (0, 1)), (CLUSTER, 1, (0, serving.MOST))):
        assert gpus.missing(site, facts(right, OURS)) == [] and gpus.judge(site, facts(right, OURS), "nvidia") == []
        for offered in wrong:
            findings = gpus.missing(site, facts(offered, OURS))
            assert {f.where for f in findings} == set(NODES) and {f.expected for f in findings} == {f"{right}"}
    assert gpus.needed(SEVERAL, facts(1, OURS)) and f"each to {serving.MOST} pods" in gpus.who_offers(facts(64, OURS))


@pytest.mark.parametrize("plugins", [(OTHER,), ()], ids=["a DaemonSet", "none"])
def test_another_s_plugin_is_told_how_to_share_where_groups_may(plugins: tuple[dict[str, str], ...]) -> None:
    """Ours beside it would take its registration away."""
    assert not gpus.needed(SEVERAL, facts(1, *plugins)) and gpus.missing(SEVERAL, facts(1, *plugins)) == []
    findings = gpus.judge(SEVERAL, facts(1, *plugins), "nvidia")
    assert [f.severity for f in findings] == ["warning"] * len(NODES)
    assert "sharing.timeSlicing.resources" in findings[0].fix and "renameByDefault: false" in findings[0].fix
    assert gpus.judge(SEVERAL, facts(8, *plugins), "nvidia") == []
    assert [f.severity for f in gpus.judge(CLUSTER, facts(8, *plugins), "nvidia")] == ["warning"] * len(NODES)
