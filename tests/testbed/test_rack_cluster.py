"""What the rack concludes from what it sees, and what it writes into other programs' files."""

from __future__ import annotations

import json

import pytest

from testbed.base import docker, names
from testbed.base.shell import RackError
from testbed.beds.rack import checks, cluster

PODS = ("p1", "p2", "p3", "p4")


def answers(**changed: dict[str, object]) -> dict[str, dict[str, object]]:
    fine: dict[str, dict[str, object]] = {p: {"peers": {o: o for o in PODS}, "service": ["p1", "p3"]} for p in PODS}
    return {**fine, **changed}


def test_a_whole_network_passes() -> None:
    assert checks.judge(answers()) == {"pairs": 16, "endpoints": 2}


def test_one_broken_pair_is_named() -> None:
    bad = {"peers": {o: o for o in PODS} | {"p4": "timeout"}, "service": ["p1", "p3"]}
    with pytest.raises(RackError, match="p2 -> p4: timeout"):
        checks.judge(answers(p2=bad))


def test_a_service_that_uses_one_endpoint_only_fails() -> None:
    alone = {"peers": {o: o for o in PODS}, "service": ["p1"]}
    with pytest.raises(RackError, match="only ever"):
        checks.judge(answers(p3=alone))


def test_a_name_that_does_not_resolve_fails() -> None:
    lost = {"peers": {o: o for o in PODS}, "service": ["URLError: no such name", "p1"]}
    with pytest.raises(RackError, match="no such name"):
        checks.judge(answers(p1=lost))


def test_a_node_without_a_probe_fails() -> None:
    three = {p: a for p, a in answers().items() if p != "p4"}
    with pytest.raises(RackError, match="3 probe pods, expected 4"):
        checks.judge(three)


def test_docker_config_keeps_what_a_user_wrote() -> None:
    config = json.loads(docker.merged('{"dns": ["10.0.0.1"], "runtimes": {"mine": {"path": "/x"}}}'))
    assert config["dns"] == ["10.0.0.1"]
    assert config["runtimes"]["mine"] == {"path": "/x"}
    assert config["default-runtime"] == docker.RUNTIME
    assert config["runtimes"][docker.RUNTIME]["path"] == str(docker.WRAPPER)


def test_broken_docker_config_is_refused_by_name() -> None:
    with pytest.raises(RackError, match=r"daemon\.json is not valid JSON"):
        docker.merged("{oops")


def test_pods_get_addresses_of_their_node_only() -> None:
    bridge, portmap = json.loads(cluster.conflist("10.244.2.0/24"))["plugins"]
    assert bridge["ipam"]["ranges"] == [[{"subnet": "10.244.2.0/24"}]]
    assert portmap["capabilities"] == {"portMappings": True}


def test_macs_are_stable_unique_and_locally_administered() -> None:
    macs = [names.mac(n, d) for n in range(1, 5) for d in range(len(names.devices()))]
    assert len(set(macs)) == len(macs)
    assert all(int(m[:2], 16) & 3 == 2 for m in macs)


def test_devices_are_a_gb10s() -> None:
    by_name = {d.netdev: d for d in names.devices()}
    assert {d.rail for d in by_name.values() if d.is_vf} == set(names.RAILS)
    for device in by_name.values():
        assert device.pci.startswith("0002:" if device.netdev.startswith("enP2") else "0000:")
        assert device.pci.startswith(by_name[device.pf].pci[:10] if device.is_vf else device.pci[:10])
    assert [d.netdev for d in by_name.values() if not d.rail] == ["enp1s0f1np1", "enP2p1s0f1np1"]
