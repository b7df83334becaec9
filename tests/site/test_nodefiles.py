"""What a node should have for its rails."""

from __future__ import annotations

from sparkloom.inputs import inventory
from sparkloom.launch import fabric
from sparkloom.site import nodefiles


def test_the_port_without_an_address_does_not_answer_for_those_of_its_functions() -> None:
    """Seen on a real kernel: the port answered with its own MAC, and replies never reached the function."""
    site = inventory.load()
    for files in nodefiles.every(site, fabric.plan(site)).values():
        names = [rail.pf for rail in site.fabric.rails] + [function["interface"] for function in files["functions"]]
        assert {f"net.ipv4.conf.{name}.arp_ignore" for name in names} == {
            key for key, value in files["sysctl"].items() if key.endswith(".arp_ignore") and value == 1
        }
