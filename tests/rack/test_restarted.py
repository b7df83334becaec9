"""`docker restart` of a node, then `up`: rails that carry frames and can be looked at, and settings as planned."""

from __future__ import annotations

import pytest

from testbed.base import names
from testbed.beds.rack import cluster, fabric
from tests.later import LATER
from tests.rack.running import run

pytestmark = [pytest.mark.rack, pytest.mark.slow, *LATER]
NODE, PEER = names.NODES["spark4"], names.NODES["spark1"]
# Every line of the files that the product keeps for systemd-sysctl, as the kernel has it; settings of interfaces that
# came after it have no rule of udev here.
KEPT = """
for line in $(cat /etc/sysctl.d/9?-sparkloom.conf 2>/dev/null | grep -v '^#' | tr -d ' '); do
  [ "$(sysctl -n ${line%%=*})" = "${line#*=}" ] || echo "$line"
done"""


@pytest.fixture(scope="module")
def restarted() -> None:
    assert run("docker", "restart", NODE).returncode == 0
    cluster.node_sh(NODE, "ls /sys/class/net/enp1s0f0np0 2>&1 || true")  # a look before `up` has brought it
    done = run("python", "-m", "testbed", "rack", "up")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]


def test_no_rail_is_a_name_without_a_device(restarted: None) -> None:
    """`up` said done, and /sys/class/net/enp1s0f0np0 led nowhere."""
    assert (fabric._missing(), fabric._unseen()) == ([], [])


def test_frames_pass(restarted: None) -> None:
    ends = {NODE: "192.0.2.4/24", PEER: "192.0.2.1/24"}
    try:
        for container, address in ends.items():
            cluster.node_sh(container, f"ip address add {address} dev enp1s0f0np0")
        assert " 0% packet loss" in cluster.node_sh(NODE, "ping -c 3 -i 0.2 -W 2 192.0.2.1")
    finally:
        for container, address in ends.items():
            cluster.node_sh(container, f"ip address del {address} dev enp1s0f0np0", check=False)


def test_the_kernel_has_what_the_file_says_and_no_unit_failed(restarted: None) -> None:
    assert cluster.node_sh(NODE, KEPT) == ""
    assert cluster.node_sh(NODE, fabric.FAILED) == ""
