"""What else a real kernel has to say: measured RDMA, a dead pod's function, a lost node, and the way back.

Goes on with the machines of test_vm_fabric.py, whose story is the shorter one.
"""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from testbed.beds.vm import login
from tests.vm.machines import BEFORE, REPO, Rack, as_planned

pytestmark = [pytest.mark.vm, pytest.mark.slow]
PROGRAM = "python3 -B /usr/local/lib/sparkloom/functions.pyz"
NETPLAN = "/etc/netplan/60-sparkloom.yaml"


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
    one, seconds = rack.machines[0], 60
    before = login.out(one, f"sha256sum {NETPLAN}; cat /proc/sys/kernel/random/boot_id")
    play = tmp_path / "lost.yml"
    wrong = {"network": {"version": 2, "ethernets": {"enP7s7": {"activation-mode": "off"}}}}
    module = {"do": "netplan", "path": NETPLAN, "content": json.dumps(wrong), "rollback_after": seconds}
    change = {
        "sparkloom_node": module, "register": "__roce_fabric_netplan", "ignore_unreachable": True,
        "vars": {"ansible_ssh_retries": 0},
    }  # fmt: skip
    proof = {"ansible.builtin.include_role": {"name": "roce_fabric", "tasks_from": "proof"}}
    given = {"roce_fabric_rollback_seconds": seconds}
    play.write_text(json.dumps([{"hosts": one.name, "become": True, "vars": given, "tasks": [change, proof]}]))
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
    rack.undo(tmp_path)
    for machine in rack.machines:
        after, before = rack.picture(machine), json.loads(BEFORE.read_text())[machine.name]
        assert {k: (before.get(k), after.get(k)) for k in before | after if before.get(k) != after.get(k)} == {}
