"""The probe reads a made-up sysfs as it reads a real one."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

from sparkloom.onnode.host import kernel
from tests.plugins.loading import module

probe = module("probe")


@pytest.fixture
def sysfs(tmp_path: Path) -> Path:
    port = tmp_path / "class/infiniband/rocep1s0f0v0/ports/1"
    for folder in ("gids", "gid_attrs/ndevs", "gid_attrs/types"):
        (port / folder).mkdir(parents=True)
    (port / "state").write_text("4: ACTIVE\n")
    table = {
        0: ("fe80:0000:0000:0000:005b:00ff:fe00:0100", "RoCE v2"),
        4: ("0000:0000:0000:0000:0000:ffff:c0a8:640b", "RoCE v1"),
        7: ("0000:0000:0000:0000:0000:ffff:c0a8:640b", "RoCE v2"),
        9: ("0000:0000:0000:0000:0000:0000:0000:0000", "RoCE v2"),
    }
    for index, (gid, kind) in table.items():
        (port / "gids" / str(index)).write_text(gid + "\n")
        (port / "gid_attrs/types" / str(index)).write_text(kind + "\n")
        (port / "gid_attrs/ndevs" / str(index)).write_text("enp1s0f0v0\n")
    return tmp_path


def test_gids_are_found_by_interface_in_a_sparse_table(sysfs: Path) -> None:
    assert [gid["index"] for gid in probe.gids(sysfs)["enp1s0f0v0"]] == [0, 4, 7]
    assert probe.rdma_ports(sysfs) == {"rocep1s0f0v0": "4: ACTIVE"}


def test_an_unreadable_entry_is_an_absent_one(sysfs: Path) -> None:
    (sysfs / "class/infiniband/rocep1s0f0v0/ports/1/gid_attrs/ndevs/4").unlink()
    assert [gid["index"] for gid in probe.gids(sysfs)["enp1s0f0v0"]] == [0, 7]


def test_settled_waits_for_the_gid_made_from_the_address(sysfs: Path) -> None:
    wanted = [{"interface": "enp1s0f0v0", "mac": "02:00:00:00:00:01", "address": "192.168.100.11"}]
    table = probe.gids(sysfs)["enp1s0f0v0"]
    assert probe.settled(wanted, {"enp1s0f0v0": {"gids": table}})
    assert not probe.settled(wanted, {"enp1s0f0v0": {"gids": table[:1]}})
    assert probe.settled(wanted, {}), "a function in a pod is not waited for"


def test_a_missing_file_or_command_is_a_fact_not_a_crash(tmp_path: Path) -> None:
    assert probe.text(tmp_path / "none") == ""
    assert probe.number(tmp_path / "none") == 0
    assert probe.run("no-such-command-here") == ""


def test_a_peer_that_answers_late_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter(["", "", "64 bytes"])
    monkeypatch.setattr(probe, "run", lambda *argv: next(answers))
    monkeypatch.setattr(probe.time, "sleep", lambda seconds: None)
    asked = {"interface": "enp1s0f0v1", "address": "192.168.100.28", "payload": 8972}
    assert probe.ping(asked, patience=60)["ok"]
    monkeypatch.setattr(probe, "run", lambda *argv: "" if "8972" in argv else "64 bytes")
    assert probe.ping(asked, patience=0) == {**asked, "ok": False, "small_ok": True}


def test_sysctl_keys_with_a_dot_in_an_interface_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "PROC", tmp_path)
    setting = tmp_path / "net/ipv4/conf/eth0.7/rp_filter"
    setting.parent.mkdir(parents=True)
    setting.write_text("1\n")
    assert kernel.live("net.ipv4.conf.eth0/7.rp_filter") == "1"
    assert kernel.apply("net.ipv4.conf.eth0/7.rp_filter", "2") is None
    assert kernel.live("net.ipv4.conf.eth0/7.rp_filter") == "2"
    assert kernel.live("net.none") is None


OTHERS = '{"ifname": "net1", "address": "4c:bb:47:00:00:01"'  # the card's own, or one of before the plan


@pytest.mark.parametrize(
    ("mac", "link"),
    [
        ("", OTHERS + ', "parentdev": "0000:01:00.0"}'),  # of a whole port no plan knows the MAC
        # "no enp1s0f0np0, on the host or in a pod; run it again", for ever: taken by a pod before it had its MAC (rack)
        ("02:5b:0b:27:01:02", OTHERS + ', "parentdev": "0000:01:00.0"}'),
        ("02:5b:0b:27:01:02", OTHERS + ', "ifalias": "enp1s0f0np0"}'),
    ],
)
def test_a_device_in_a_pod_is_known_by_its_place_or_alias(mac: str, link: str, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = [{"interface": "enp1s0f0np0", "mac": mac, "address": "192.168.100.11", "pci": "0000:01:00.0"}]
    inside = f'[{{"ifname": "tun0"}}, {link}]'
    monkeypatch.setattr(probe, "run", lambda *argv: inside if argv[0] == "nsenter" else "")
    with subprocess.Popen(["unshare", "--net", "sleep", "20"]) as pod:
        try:
            until = time.monotonic() + 10
            here = Path("/proc/self/ns/net").readlink()
            while Path(f"/proc/{pod.pid}/ns/net").readlink() == here and time.monotonic() < until:
                time.sleep(0.02)
            assert probe.in_pods(wanted, {}) == ["enp1s0f0np0"]
            assert probe.in_pods(wanted, {"enp1s0f0np0": {}}) == []
        finally:
            pod.kill()
