"""The device plugin: on the Sparks only, with NVIDIA's runtime, and no rights that it does not use."""

from __future__ import annotations

import json

from sparkloom.inputs import inventory
from sparkloom.render.manifests import gpu
from tests.render.manifests import schemas

CLUSTER = inventory.load()
IMAGE = "plugin:v1"


def test_one_daemonset_on_the_nodes_of_the_plan() -> None:
    (item,) = gpu.device_plugin(CLUSTER, IMAGE, "nvidia")
    spec = item["spec"]["template"]["spec"]
    assert spec["runtimeClassName"] == "nvidia"
    (term,) = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert term["matchExpressions"][0]["values"] == ["spark1", "spark2", "spark3", "spark4"]
    assert item["spec"]["selector"]["matchLabels"].items() <= item["spec"]["template"]["metadata"]["labels"].items()


def test_no_rights_no_slicing() -> None:
    (item,) = gpu.device_plugin(CLUSTER, IMAGE, "nvidia")
    text = json.dumps(item)
    assert "privileged" not in text and "replicas" not in text and "timeSlicing" not in text
    spec = item["spec"]["template"]["spec"]
    assert spec["automountServiceAccountToken"] is False
    assert [volume["hostPath"]["path"] for volume in spec["volumes"]] == ["/var/lib/kubelet/device-plugins"]


def test_it_is_valid_in_every_release() -> None:
    objects = gpu.device_plugin(CLUSTER, IMAGE, "nvidia")
    assert [text for release in schemas.RELEASES for item in objects for text in schemas.problems(item, release)] == []
