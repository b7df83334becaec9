"""The fabric role on a real kernel: SR-IOV through sysfs, netplan, GID tables, RDMA traffic, boots.

One story in order: each test goes on where the one before it ended; test_vm_more.py goes on after it.
"""

from __future__ import annotations

import json
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from ipaddress import IPv6Address
from pathlib import Path

import pytest

from sparkloom.launch.fabric import Endpoint
from testbed.base.vm_names import Machine
from testbed.beds.vm import lifecycle, login, qemu
from tests.vm.machines import BEFORE, INVENTORY, Rack, as_planned, ipv4_gids

pytestmark = [pytest.mark.vm, pytest.mark.slow]
QUEUE_PAIR = Path(__file__).with_name("queue_pair.py").read_text()
REMOVALS = Path(__file__).with_name("removals.sh").read_text()
BOOTED = """
systemctl show -p ActiveEnterTimestampMonotonic --value sparkloom-functions systemd-networkd
echo --
journalctl -b --no-pager | grep 'Failed to activate service' || true
"""


def first(rack: Rack, machine: Machine, vf: int = 0) -> Endpoint:
    return rack.plan.of(machine.name, vf)[0]


def connect(machine: Machine, device: str, index: int, peer: str) -> str:
    gid = IPv6Address(f"::ffff:{peer}").exploded
    return login.run([*login.argv(machine), f"python3 - {device} {index} {gid}"], stdin=QUEUE_PAIR, timeout=300).stdout


def test_a_bare_machine_has_ports_and_no_functions(rack: Rack) -> None:
    before = {}
    assert len(rack.machines) == 2
    for machine in rack.machines:
        found = rack.read(machine)
        assert found["counts"] == {"enp1s0f0np0": 0, "enp2s0f0np0": 0}
        assert not found["functions"]
        before[machine.name] = rack.picture(machine)
    BEFORE.write_text(json.dumps(before))


def test_the_role_makes_all_that_is_planned(rack: Rack) -> None:
    recap = rack.playbook()
    assert {row["failed"] for row in recap.values()} == {0}
    assert [line for machine in rack.machines for line in as_planned(rack, machine)] == []


def test_full_frames_pass_between_the_machines_and_larger_ones_do_not(rack: Rack) -> None:
    one, two = rack.machines
    for mine, peer in zip(rack.plan.of(one.name), rack.plan.of(two.name), strict=True):
        ping = f"ping -q -c 2 -W 5 -M do -I {mine.interface} {peer.address} -s"
        login.sh(one, f"{ping} {mine.mtu - 28}")
        assert login.sh(one, f"{ping} {mine.mtu - 27}", check=False).returncode != 0


@pytest.mark.parametrize("rail", [0, 1])
def test_rdma_writes_cross_each_rail(rack: Rack, rail: int) -> None:
    one, two = rack.machines
    mine, peer = rack.plan.of(one.name, 0)[rail], rack.plan.of(two.name, 0)[rail]
    index = ipv4_gids(rack.read(one), mine.hca)[mine.address]
    test = f"timeout 120 ib_write_bw -d {mine.hca} -x {index} -n 100 -s 65536 -F --report_gbits"
    login.sh(two, f"nohup {test} >/tmp/server.log 2>&1 </dev/null &\nsleep 3")
    counter = f"/sys/class/net/{mine.interface}/statistics/tx_bytes"
    before = int(login.out(one, f"cat {counter}"))
    answer = login.out(one, f"{test} {peer.address}")
    assert "65536" in answer.splitlines()[-2], answer
    sent = int(login.out(one, f"cat {counter}")) - before
    assert sent > 100 * 65536, f"the data did not go through {mine.interface}"


def test_without_its_ipv4_address_a_function_reaches_no_peer(rack: Rack) -> None:
    """Why functions have addresses on the host: else only the link-local GID is left, and connecting with it fails."""
    one, two = rack.machines
    mine, peer = first(rack, one), first(rack, two)
    before = rack.read(one)
    index = ipv4_gids(before, mine.hca)[mine.address]
    assert connect(one, mine.hca, index, peer.address) == "connected\n"
    login.sh(one, f"ip -4 address flush dev {mine.interface}; sleep 1")
    after = rack.read(one)
    assert [IPv6Address(gid).is_link_local for _, gid, _ in after["gids"][mine.hca]] == [True]
    left = after["gids"][mine.hca][0][0]
    assert connect(one, mine.hca, left, peer.address) == "Invalid argument\n", "a link-local GID reaches no IPv4 GID"
    assert connect(one, mine.hca, index, peer.address) == "No data available\n", "the GID is gone, not only unlisted"


def test_the_role_mends_what_a_hand_broke(rack: Rack) -> None:
    """The address is still missing from the test before; a name, a MAC and an MTU go too, on the other machine."""
    one, two = rack.machines
    renamed, changed = rack.plan.of(two.name, 0)[0].interface, rack.plan.of(two.name, 0)[1].interface
    login.sh(
        two,
        f"ip link set {renamed} down; ip link set {renamed} name wrong0\n"
        # a port that was told a function's MAC may refuse another one from the function itself
        f"ip link set {changed} down; ip link set {changed} address 02:00:00:00:00:99 || true\n"
        f"ip link set {changed} mtu 1500 up",
    )
    assert as_planned(rack, one) and as_planned(rack, two)
    recap = rack.playbook()
    assert all(row["changed"] > 0 for row in recap.values()), recap
    assert [line for machine in rack.machines for line in as_planned(rack, machine)] == []


def ends(machines: list[Machine]) -> list[str]:
    """Their names in the order in which they end."""
    ended: list[str] = []
    until = time.monotonic() + 600
    while len(ended) < len(machines) and time.monotonic() < until:
        ended += [one.name for one in machines if one.name not in ended and qemu.pid(one.state) is None]
        time.sleep(0.5)
    return ended


def back(rack: Rack) -> None:
    """The last one first, and nobody does anything."""
    for machine in reversed(rack.machines):
        lifecycle.power_on(machine)
    for machine in rack.machines:
        login.sh(machine, "systemctl is-system-running --wait >/dev/null || true")
    assert [line for machine in rack.machines for line in as_planned(rack, machine)] == []
    for machine in rack.machines:
        begun, waited = login.out(machine, BOOTED).split("--")
        functions, networkd = (int(line) for line in begun.split())
        assert 0 < functions < networkd, "the functions were made after the network came up"
        assert waited == "", "networkd waits for the functions: who asks it for something meanwhile holds the boot up"


def test_power_off_ends_the_server_last_and_power_brings_all_back(rack: Rack, tmp_path: Path) -> None:
    play = tmp_path / "off.yml"
    off = {"ansible.builtin.include_role": {"name": "stopping", "tasks_from": "power_off"}}
    play.write_text(json.dumps([{"hosts": "sparks", "become": True, "gather_facts": False, "tasks": [off]}]))
    with ThreadPoolExecutor(1) as pool:
        ended = pool.submit(ends, rack.machines)
        rack.playbook(play)
        assert ended.result() == ["spark2", "spark1"]
    back(rack)


def test_a_power_cut_leaves_all_as_planned(rack: Rack) -> None:
    for machine in rack.machines:
        login.sh(machine, "sync")  # these disks have no journal
    for machine in rack.machines:
        assert qemu.stop(machine.state)
    back(rack)


def test_machines_whose_addresses_changed_places_are_named_and_left_alone(rack: Rack) -> None:
    """By their machine-id: one image gave them one host key."""
    swapped = INVENTORY.parents[1] / ".build/vm-swapped"
    shutil.copytree(INVENTORY, swapped, dirs_exist_ok=True)
    hosts = swapped / "hosts.yml"
    hosts.write_text(hosts.read_text().replace("2201", "x").replace("2202", "2201").replace("x", "2202"))
    done = rack.run("playbooks/fabric.yml", inventory=swapped)
    assert done.returncode != 0 and "changed=0" in done.stdout and "changed=1" not in done.stdout, done.stdout[-3000:]
    for one, other in (("spark1", "spark2"), ("spark2", "spark1")):
        assert f"{one}'s address (127.0.0.1) is answered by {other}" in " ".join(done.stdout.split())
    shutil.rmtree(swapped)


def test_a_second_run_changes_nothing(rack: Rack) -> None:
    recap = rack.playbook()
    assert {name: row["changed"] for name, row in recap.items()} == {"spark1": 0, "spark2": 0}


def removed(rack: Rack, machine: Machine, peer: Machine, times: int) -> None:
    """Takes the first rail's card off the machine's bus and back, while its other card talks to the peer."""
    gone, other = rack.plan.of(machine.name, 0)
    functions = " ".join(
        f"{e.interface},{e.mac},{e.mtu},{e.cidr}" for e in rack.plan.of(machine.name) if e.pf == gone.pf
    )
    stays = f"cd /sys/class/net; cat enP7s7/ifindex {other.pf}/ifindex {other.interface}/ifindex"
    before = login.out(machine, stays)
    ping = f"ping -q -i 0.2 -I {other.interface} {rack.plan.of(peer.name, 0)[1].address}"
    login.sh(machine, f"nohup {ping} >/tmp/ping 2>&1 </dev/null & echo $! >/tmp/pid")
    script = [*login.argv(machine), f"sh -s {gone.pci} {times} {functions}"]
    done = login.run(script, stdin=REMOVALS, check=False, timeout=1500)
    print(machine.name, done.stdout, sep="\n")
    assert done.stdout.count(": back after") == times, done.stdout
    assert login.out(machine, stays) == before, "another device was made anew"
    assert as_planned(rack, machine) == []
    lost = login.out(machine, "kill -INT $(cat /tmp/pid); sleep 1; grep -o '[0-9.]*% packet loss' /tmp/ping")
    assert lost == "0% packet loss"


def test_a_card_that_leaves_the_bus_comes_back_with_all_that_is_planned(rack: Rack) -> None:
    """What hot-plug does to a Spark whose cable was out, twenty times; the other card and its traffic are untouched."""
    one, two = rack.machines
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda pair: removed(rack, *pair, times=10), [(one, two), (two, one)]))
