"""A network that is already set up, and the way to a machine, which no change of the rails touches.

Goes on with the machines of test_vm_more.py, which are bare again by then.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.base.vm_names import Machine
from testbed.beds.vm import login
from tests.vm.machines import Rack, as_planned

pytestmark = [pytest.mark.vm, pytest.mark.slow]
WAY, UNIT = "enP7s7", "way-monitor"
NMCLI = "nmcli -t -f DEVICE,STATE device"
THEIRS = "/etc/netplan/40-cx7.yaml"
# As NVIDIA's guide for two Sparks (dgx-spark-playbooks 0db7c14, connect-two-sparks), on the ports of these machines.
# The second machine's other port is nobody's, so its NetworkManager asks for an address there.
GUIDE = """network:
  version: 2
  ethernets:
    enp1s0f0np0: {addresses: [192.168.100.%d/24], dhcp4: no}
"""
SECOND_PORT = "    enp2s0f0np0: {addresses: [192.168.101.10/24], dhcp4: no}\n"
GUIDES = (GUIDE % 10 + SECOND_PORT, GUIDE % 11)


def watch(machine: Machine) -> None:
    login.sh(
        machine,
        f"""systemctl stop {UNIT} 2>/dev/null || true
        systemctl reset-failed {UNIT} 2>/dev/null || true
        rm -f /run/way.log
        systemd-run --quiet --unit={UNIT} sh -c 'exec ip monitor link address > /run/way.log'; sleep 1""",
    )


def seen(machine: Machine) -> tuple[list[str], int]:
    """Events of the management port, and how many of all others."""
    login.sh(machine, f"sleep 1; systemctl stop {UNIT}")
    lines = login.out(machine, "cat /run/way.log").splitlines()
    mine = [line for line in lines if f" {WAY}" in line]
    return mine, len(lines) - len(mine)


# How the way to a machine may be managed besides netplan, as above: what makes it so, and what makes it as it was.
NETWORKD = (
    # netplan's file is networkd's own to read (0640): a plain copy of it would leave the way to nobody
    f"""install -m 644 /run/systemd/network/10-netplan-{WAY}.network /etc/systemd/network/05-way.network
    mv /etc/netplan/01-management.yaml /root/; netplan generate; networkctl reload; sleep 5""",
    """mv /root/01-management.yaml /etc/netplan/; netplan generate; rm /etc/systemd/network/05-way.network
    networkctl reload; sleep 5""",
)
# As on a Spark with a desktop. It takes the rails' ports as well, and asks for an address there. Until udev looks at
# the way again, netplan's mark says that it is not NetworkManager's.
NETWORK_MANAGER = (
    f"""sed 's/renderer: networkd/renderer: NetworkManager/' /etc/netplan/01-management.yaml > /root/desktop.yaml
    mv /etc/netplan/01-management.yaml /root/
    install -m 600 /root/desktop.yaml /etc/netplan/01-network-manager-all.yaml
    netplan generate
    udevadm control --reload; udevadm trigger --settle --action=change /sys/class/net/{WAY}
    networkctl reload; systemctl start NetworkManager
    for n in $(seq 60); do nmcli -t -f DEVICE,STATE device | grep -q '^{WAY}:connected$' && break; sleep 2; done
    nmcli -t -f DEVICE,STATE device | grep '^{WAY}:connected$'""",
    """systemctl stop NetworkManager; rm /etc/netplan/01-network-manager-all.yaml
    mv /root/01-management.yaml /etc/netplan/; netplan generate; networkctl reload; sleep 5""",
)
DHCP_ENDS = 50  # seconds until NetworkManager gives up asking, and takes the port's addresses away


@pytest.fixture(scope="module")
def managed(rack: Rack) -> Iterator[Rack]:
    """Two Sparks set up by the guide; the first machine's way is networkd's own, the second's NetworkManager's."""
    managers = list(zip(rack.machines, GUIDES, (NETWORKD, NETWORK_MANAGER), strict=True))
    for machine, guide, (begin, _end) in managers:
        login.sh(machine, f"umask 077; cat > {THEIRS} <<'EOF'\n{guide}EOF\nnetplan apply; sleep 3")
        login.sh(machine, begin)
        watch(machine)
    yield rack
    for machine, _guide, (_begin, end) in managers:
        login.sh(machine, f"rm {THEIRS}\n{end}")
        login.sh(machine, "for port in enp1s0f0np0 enp2s0f0np0; do ip -4 address flush dev $port; done")


def test_what_a_guide_set_up_is_refused_and_taken_over_where_that_is_asked(managed: Rack) -> None:
    refused = managed.run("playbooks/fabric.yml")
    assert refused.returncode != 0 and f"{THEIRS} gives enp1s0f0np0 192.168.100.11/24" in refused.stdout
    managed.playbook("playbooks/fabric.yml", "-e", "fabric_adopt=true")
    assert [line for machine in managed.machines for line in as_planned(managed, machine)] == []
    ports = login.out(managed.machines[1], "ip -4 -o address show dev enp1s0f0np0")
    assert "192.168.100.11" not in ports


def test_network_manager_leaves_the_rails_to_us(managed: Rack) -> None:
    two = managed.machines[1]
    login.sh(two, f"sleep {DHCP_ENDS}")
    assert as_planned(managed, two) == []
    told = dict(line.split(":")[:2] for line in login.out(two, NMCLI).splitlines())
    rails = {interface for endpoint in managed.plan.of(two.name, 0) for interface in (endpoint.pf, endpoint.interface)}
    assert told[WAY] == "connected" and {told[name] for name in rails} == {"unmanaged"}, told


def test_a_function_that_came_back_as_net1_is_repaired_by_the_timer(managed: Rack) -> None:
    one = managed.machines[0]
    first = managed.plan.of(one.name, 0)[0]
    name = first.interface
    login.sh(one, f"ip link set {name} down; ip link set {name} name net1")
    login.sh(one, f"for n in $(seq 60); do ip link show {name} >/dev/null 2>&1 && break; sleep 3; done; sleep 8")
    assert as_planned(managed, one) == []
    told = login.out(one, f"ip -j link show dev {first.pf}")
    assert json.loads(told)[0]["vfinfo_list"][0]["address"] == first.mac


def test_undo_gives_the_guides_files_back_and_the_way_had_no_event_since(managed: Rack, tmp_path: Path) -> None:
    managed.undo(tmp_path)
    events = [seen(machine) for machine in managed.machines]
    assert all(not way and others for way, others in events), events
    for machine, guide in zip(managed.machines, GUIDES, strict=True):
        back = login.out(machine, f"stat -c %a {THEIRS}; cat {THEIRS}")
        assert back == f"600\n{guide}".strip()
