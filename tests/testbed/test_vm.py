"""The virtual machines' facts: what QEMU is told, and that the inventory tells the same."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from sparkloom.inputs import inventory as inventories
from testbed.base import vm_names
from testbed.base.shell import RackError
from testbed.beds.vm import lifecycle, qemu
from testbed.make.vm import image, trees

INVENTORY = vm_names.REPO / "inventories/vm"


def line(number: int) -> str:
    return " ".join(qemu.argv(vm_names.Machine(number), Path("/somewhere")))


def test_everything_that_a_machine_listens_on_is_on_the_loopback_device() -> None:
    for word in line(1).split():
        if "mcast=" in word:
            assert word.endswith(",localaddr=127.0.0.1")
        if "hostfwd=" in word:
            assert "hostfwd=tcp:127.0.0.1:2201-" in word


def test_no_two_machines_share_an_address_a_port_or_an_identity() -> None:
    machines = vm_names.machines(vm_names.MOST)
    macs = [machine.mac(card) for machine in machines for card in (0, 1, 8, 9)]
    assert len(set(macs)) == len(macs)
    assert all(int(mac[:2], 16) & 3 == 2 for mac in macs), "locally administered, for one receiver"
    assert len({machine.port for machine in machines}) == len({m.machine_id for m in machines}) == vm_names.MOST
    assert {len(machine.machine_id) for machine in machines} == {32}


def test_the_inventory_names_the_machines_ports_and_places() -> None:
    hosts = yaml.safe_load((INVENTORY / "hosts.yml").read_text())["all"]["children"]["sparks"]["hosts"]
    assert {name: values["ansible_port"] for name, values in hosts.items()} == {
        machine.name: machine.port for machine in vm_names.machines(2)
    }
    links = "".join(path.read_text() for path in (vm_names.GUEST_FILES / "etc/systemd/network").iterdir())
    for rail in inventories.load(INVENTORY).fabric.rails:
        assert f"Path=pci-{rail.pci}\n[Link]\nName={rail.pf}\n" in links
    assert all(machine.mac(8) in links for machine in vm_names.machines(vm_names.MOST)), "the LAN's ports have a name"


def test_a_kept_state_is_not_used_for_other_hardware(monkeypatch: pytest.MonkeyPatch) -> None:
    before = lifecycle.booted(2)
    assert lifecycle.booted(3) != before
    monkeypatch.setattr(vm_names, "MEMORY_MIB", 1024)
    assert lifecycle.booted(2) != before


def test_modules_are_listed_by_when_they_are_needed() -> None:
    assert image.wanted_modules("boot") == ["virtio_pci", "virtio_blk", "ext4"]
    assert {"igb", "igbvf", "rdma_rxe"} <= set(image.wanted_modules("keep"))


def test_a_paravirtual_kvm_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARKLOOM_VM_ACCEL", raising=False)
    monkeypatch.setattr(Path, "read_text", lambda self: "flags : fpu hypervisor lm")
    assert vm_names.accelerator() == "tcg"
    monkeypatch.setattr(Path, "read_text", lambda self: "flags : fpu vmx lm")
    monkeypatch.setattr(os, "access", lambda path, mode: True)
    assert vm_names.accelerator() == "kvm"


def test_another_distribution_is_told_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARKLOOM_VM_MIRROR", raising=False)
    monkeypatch.setattr(trees.machine, "os_release", lambda: {"ID": "ubuntu"})
    with pytest.raises(RackError, match="SPARKLOOM_VM_MIRROR"):
        trees.mirror()


@pytest.mark.parametrize("words", [["ssh", "spark9"], ["reboot", "spark4"]])
def test_a_machine_that_does_not_run_is_refused_in_one_line(words: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "testbed", "vm", *words], capture_output=True, text=True, cwd=vm_names.REPO
    )
    assert done.returncode == 1
    assert done.stderr.startswith("error: ") and "Traceback" not in done.stderr
