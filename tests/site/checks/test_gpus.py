"""Who offers GPUs: nobody yet, ours, or a device plugin that was there before."""

from __future__ import annotations

from typing import Any

import pytest

from sparkloom.base.finding import errors
from sparkloom.inputs import inventory
from sparkloom.render.manifests import gpu
from sparkloom.site.checks import gpus

CLUSTER = inventory.load()
NODES = [node.kubernetes_node for node in CLUSTER.nodes]
OURS = {"namespace": gpu.NAMESPACE, "name": gpu.NAME, "image": "nvcr.io/nvidia/k8s-device-plugin:v0.18.2@sha256:0"}
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
    assert told in gpus.told(found)
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
