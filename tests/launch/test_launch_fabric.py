"""Which rails the ranks use follows from the topology and the engine, never from the name of a variable."""

from __future__ import annotations

import json

import pytest

from sparkloom.render import manifests
from sparkloom.render.manifests import supervision
from tests.render.manifests import case

STRAY = "env.NCCL_IB_HCA=x"  # somebody's own, where the ranks have no rail


@pytest.mark.parametrize("mode", ["privileged", "device-plugin"])
@pytest.mark.parametrize("name", [case.SOLO, case.TRTLLM, case.RPC])
def test_a_variable_gives_no_rights_where_there_is_no_fabric(name: str, mode: str) -> None:
    cluster = case.cluster(security_mode=mode)
    launch = case.launch(name, cluster, STRAY)
    objects, _ = manifests.build(launch, cluster, "refuse")
    for pod in case.pods(objects):
        (container,) = pod["spec"]["containers"]
        assert container["securityContext"]["privileged"] is False
        assert container["resources"]["limits"] == {"nvidia.com/gpu": "1"}
        assert "NVIDIA_MOFED" not in json.dumps(container["env"])
    assert "/etc/nccl.conf" not in json.dumps(objects)
    plan = supervision.plan(launch, "refuse")
    assert (plan["rdma"], plan["rails"]) == (False, 0)


def test_a_group_uses_every_rail_of_its_nodes() -> None:
    assert case.launch().fabric == ("a", "b")
    assert case.launch(case.ULTRA, case.one_rail()).fabric == ("a",)
    plan = supervision.plan(case.launch(), "refuse")
    assert (plan["rdma"], plan["rails"]) == (True, 2)


def test_a_group_keeps_its_fabric_whatever_its_profile_says_of_the_devices() -> None:
    launch = case.launch(case.ULTRA, None, "env.NCCL_NET=Socket", STRAY)
    assert launch.fabric == ("a", "b")
