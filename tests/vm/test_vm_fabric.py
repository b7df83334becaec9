"""The fabric role on a real kernel: SR-IOV through sysfs, netplan, GID tables, RDMA traffic, a reboot.

One story in order: each test goes on where the one before it ended.
"""

from __future__ import annotations

import json
import time
from ipaddress import IPv6Address
from pathlib import Path
from typing import Any

import pytest

from sparkloom.fabric import Endpoint
from testbed.vm import lifecycle, login, names
from testbed.vm.names import Machine
from tests.vm.machines import REPO, Rack

pytestmark = [pytest.mark.vm, pytest.mark.slow]
PROGRAM = "python3 -B /usr/local/lib/sparkloom/functions"
NETPLAN = "/etc/netplan/60-sparkloom.yaml"
BEFORE = names.STATE / "before.json"  # how the bare machines were; kept for a story that goes on with them
QUEUE_PAIR = Path(__file__).with_name("queue_pair.py").read_text()


def ipv4_gids(found: dict[str, Any], device: str) -> dict[str, int]:
    """Address -> index, of the RoCE v2 GIDs made from an IPv4 address."""
    pairs = (
        (IPv6Address(gid).ipv4_mapped, index) for index, gid, kind in found["gids"].get(device, []) if "v2" in kind
    )
    return {str(address): index for address, index in pairs if address}


def first(rack: Rack, machine: Machine, vf: int = 0) -> Endpoint:
    return rack.plan.of(machine.name, vf)[0]


def connect(machine: Machine, device: str, index: int, peer: str) -> str:
    gid = IPv6Address(f"::ffff:{peer}").exploded
    return login.run([*login.argv(machine), f"python3 - {device} {index} {gid}"], stdin=QUEUE_PAIR, timeout=300).stdout


def as_planned(rack: Rack, machine: Machine) -> list[str]:
    """What of the plan is not so on the machine; empty when all is."""
    found, wrong = rack.read(machine), []
    for e in rack.plan.of(machine.name):
        link, device = found["links"].get(e.interface, {}), found["rdma"].get(e.hca, {})
        addresses = [f"{a['local']}/{a['prefixlen']}" for a in link.get("addr_info", [])]
        facts = {
            "function": (found["functions"].get(e.interface), [e.pf, e.vf]),
            "mac": (link.get("address"), e.mac),
            "mtu": (link.get("mtu"), e.mtu),
            "addresses": (addresses, [e.cidr]),
            "arp_ignore": ([found["arp_ignore"].get(name) for name in (e.pf, e.interface)], ["1", "1"]),
            "carrier": ("LOWER_UP" in link.get("flags", []), True),
            "rdma": ((device.get("netdev"), device.get("state")), (e.interface, "ACTIVE")),
            "gid": (list(ipv4_gids(found, e.hca)), [e.address]),
        }
        wrong += [f"{machine.name} {e.interface} {key}: {got} is not {want}" for key, (got, want) in facts.items()
                  if got != want]  # fmt: skip
    return wrong


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
        f"ip link set {changed} down; ip link set {changed} address 02:00:00:00:00:99\n"
        f"ip link set {changed} mtu 1500 up",
    )
    assert as_planned(rack, one) and as_planned(rack, two)
    recap = rack.playbook()
    assert all(row["changed"] > 0 for row in recap.values()), recap
    assert [line for machine in rack.machines for line in as_planned(rack, machine)] == []


def test_a_reboot_brings_all_back_without_the_role(rack: Rack) -> None:
    one = rack.machines[0]
    lifecycle.reboot(one)
    login.sh(one, "systemctl is-system-running --wait >/dev/null || true")
    assert as_planned(rack, one) == []
    order = login.out(
        one, "systemctl show -p ActiveEnterTimestampMonotonic --value sparkloom-functions systemd-networkd"
    )
    functions, networkd = (int(line) for line in order.split())
    assert 0 < functions < networkd, "the functions were made after the network came up"


def test_a_second_run_changes_nothing(rack: Rack) -> None:
    recap = rack.playbook()
    assert {name: row["changed"] for name, row in recap.items()} == {"spark1": 0, "spark2": 0}


def test_rdma_is_measured_between_the_machines_in_both_directions(rack: Rack) -> None:
    recap = rack.playbook("playbooks/verify.yml")
    assert {row["failed"] + row["changed"] for row in recap.values()} == {0}
    report = json.loads((REPO / "build/vm/fabric_check.json").read_text())
    assert report["verdict"] == "as fast as it should be"
    assert [(pair["client"], pair["server"]) for pair in report["pairs"]] == [
        ("spark1", "spark2"),
        ("spark2", "spark1"),
    ]
    for pair in report["pairs"]:
        assert set(pair["rails"]) == {"a", "b"}
        assert all(rail["gbit"] > 0 and rail["latency_us"] > 0 for rail in pair["rails"].values()), pair
    units = login.out(
        rack.machines[0], "systemctl list-units --all --plain 'sparkloom-fabric-check*' | grep -c service || true"
    )
    assert units == "0", "something still listens"


def test_a_function_in_a_dead_pods_namespace_comes_back_and_no_other_does(rack: Rack) -> None:
    one = rack.machines[0]
    dead, living = rack.plan.of(one.name, 0)
    login.sh(
        one,
        f"""ip netns add cni-dead; ip netns add cni-living
        ip link set {dead.interface} netns cni-dead
        ip -n cni-dead link set {dead.interface} name net1
        ip link set {living.interface} netns cni-living
        nohup ip netns exec cni-living sleep 900 >/dev/null 2>&1 </dev/null &
        sleep 1""",
    )
    assert login.out(one, f"{PROGRAM} --pod-start 900") == "as planned", (
        "a young namespace may belong to a starting pod"
    )
    said = login.out(one, f"{PROGRAM} --pod-start 0")
    assert said == f"changed: {dead.interface}: back from /run/netns/cni-dead, whose pod is gone"
    assert login.out(one, f"cat /sys/class/net/{dead.interface}/address") == dead.mac
    assert living.interface in login.out(one, "ip -n cni-living -o link"), "a living pod's function stays its own"
    refused = login.sh(one, f"{PROGRAM} --undo", check=False)
    assert refused.returncode == 1 and f"{living.interface}: in a pod" in refused.stderr
    login.sh(
        one, f"pkill -f 'sleep 900'; sleep 1; {PROGRAM} --pod-start 0; ip netns del cni-dead; ip netns del cni-living"
    )
    assert login.out(one, PROGRAM) == "as planned"


def test_a_node_that_is_lost_gets_its_previous_netplan_file_back(rack: Rack, tmp_path: Path) -> None:
    """A change of netplan takes the management port down; nobody can log in, and the timer brings it back."""
    one, seconds = rack.machines[0], 100
    before = login.out(one, f"sha256sum {NETPLAN}; cat /proc/sys/kernel/random/boot_id")
    play = tmp_path / "lost.yml"
    wrong = {"network": {"version": 2, "ethernets": {"enP7s7": {"activation-mode": "off"}}}}
    module = {"path": NETPLAN, "content": json.dumps(wrong), "rollback_after": seconds}
    change = {
        "sparkloom_netplan": module, "register": "__roce_fabric_netplan", "ignore_unreachable": True,
        "vars": {"ansible_ssh_retries": 0},
    }  # fmt: skip
    proof = {"ansible.builtin.include_role": {"name": "roce_fabric", "tasks_from": "proof"}}
    play.write_text(
        json.dumps([{"hosts": one.name, "vars": {"roce_fabric_rollback_seconds": seconds}, "tasks": [change, proof]}])
    )
    start = time.monotonic()
    done = rack.run(play)
    print(f"lost and back after {time.monotonic() - start:.0f} s")
    assert done.returncode != 0
    assert "UNREACHABLE" in done.stdout and "stopped answering on its management address" in done.stdout, done.stdout
    after = login.out(one, f"sha256sum {NETPLAN}; cat /proc/sys/kernel/random/boot_id")
    assert after == before, "another file, or the machine was rebooted"
    assert "what was before is back" in login.out(one, "journalctl -t sparkloom -o cat")
    assert as_planned(rack, one) == []


def test_undo_leaves_the_machines_byte_for_byte_as_they_were(rack: Rack, tmp_path: Path) -> None:
    play = tmp_path / "undo.yml"
    undo = {"ansible.builtin.include_role": {"name": "roce_fabric", "tasks_from": "undo"}}
    play.write_text(json.dumps([{"hosts": "sparks", "tasks": [undo]}]))
    rack.playbook(play)
    for machine in rack.machines:
        after, before = rack.picture(machine), json.loads(BEFORE.read_text())[machine.name]
        assert {k: (before.get(k), after.get(k)) for k in before | after if before.get(k) != after.get(k)} == {}
    recap = rack.playbook(play)
    assert {name: row["changed"] for name, row in recap.items()} == {"spark1": 0, "spark2": 0}
