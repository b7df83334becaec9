"""The attachments of our own rendering, given to the real host-device plugin and a real virtual function."""

from __future__ import annotations

import json

import pytest

from sparkloom.render.manifests import attachments
from testbed.beds.vm import login
from tests.vm.machines import Rack

pytestmark = [pytest.mark.vm, pytest.mark.slow]


def test_a_function_is_found_by_its_place_whatever_it_is_called(rack: Rack) -> None:
    one, mine = rack.machines[0], rack.plan.attachments[0]
    assert mine.place, "found by its name, which it loses in a pod"
    plugin, _private = json.loads(attachments.definition(mine, "sparkloom")["spec"]["config"])["plugins"]
    given = {"cniVersion": attachments.CNI_VERSION, "name": mine.name, "runtimeConfig": {"ips": ["192.168.100.11/24"]}}
    config = json.dumps({**given, **plugin})
    port = mine.place.split("/")[-2]
    said = login.out(
        one,
        f"""echo 2 > /sys/bus/pci/devices/{port}/sriov_numvfs; sleep 3
        ip link set $(ls {mine.place}/net) name another
        ip netns add pod
        export CNI_PATH=/usr/lib/cni CNI_CONTAINERID=c1 CNI_NETNS=/var/run/netns/pod CNI_IFNAME=net1
        echo '{config}' | CNI_COMMAND=ADD /usr/lib/cni/host-device >/dev/null
        ip -n pod -br -4 address show net1 | tr -s ' '
        echo '{config}' | CNI_COMMAND=DEL /usr/lib/cni/host-device
        ls {mine.place}/net
        ip netns del pod; echo 0 > /sys/bus/pci/devices/{port}/sriov_numvfs""",
    ).splitlines()
    name, _carrier, address = said[0].split()
    assert (name, address) == ("net1", "192.168.100.11/24"), "its carrier is the port's, which another test may have up"
    assert said[1] == "another", "home again, under the name that it had"
