"""The machine module reads a made-up sysfs as it reads a real one."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sparkloom.onnode.host import gpu, ground, pci
from sparkloom.onnode.host import system as host
from sparkloom.onnode.tasks.main import answer
from tests.plugins.loading import module

machine = module("machine")


def read(args: dict[str, Any]) -> dict[str, Any]:
    return answer({"do": "machine", "params": args}, check_mode=False)


def files(root: Path, content: dict[str, str]) -> None:
    for name, text in content.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text + "\n")


@pytest.fixture
def sysfs(tmp_path: Path) -> Path:
    port = "bus/pci/devices/0000:01:00.0"
    net = {"flags": "0x1003", "carrier": "1", "speed": "200000", "mtu": "1500", "address": "aa:bb:cc:dd:ee:ff"}
    files(
        tmp_path,
        {
            **{f"{port}/{k}": v for k, v in {"class": "0x020000", "vendor": "0x15b3", "device": "0x1021"}.items()},
            f"{port}/sriov_totalvfs": "8",
            f"{port}/current_link_speed": "32.0 GT/s PCIe",
            f"{port}/current_link_width": "4",
            f"{port}/max_link_speed": "32.0 GT/s PCIe",
            f"{port}/max_link_width": "16",
            f"{port}/aer_dev_correctable": "RxErr 7\nBadTLP 0\nTOTAL_ERR_COR 7",
            f"{port}/aer_dev_nonfatal": "DLP 0\nUnsupReq 1\nTOTAL_ERR_NONFATAL 1",
            **{f"class/net/enp1s0f0np0/{k}": v for k, v in net.items()},
            "class/infiniband/rocep1s0f0/fw_ver": "28.45.4028",
            "bus/pci/devices/0000:01:00.2/class": "0x020000",
            "bus/pci/devices/000f:01:00.0/class": "0x030000",
            "bus/pci/devices/000f:01:00.0/vendor": "0x10de",
            "bus/pci/devices/000f:01:00.0/device": "0x2e12",
            "class/dmi/id/sys_vendor": "NVIDIA",
            "class/dmi/id/product_name": "NVIDIA_DGX_Spark",
        },
    )
    for folder in ("net/enp1s0f0np0", "infiniband/rocep1s0f0"):
        (tmp_path / port / folder).mkdir(parents=True)
    (tmp_path / "bus/pci/devices/0000:01:00.2/physfn").symlink_to(tmp_path / port)
    return tmp_path


def test_physical_ports_are_found_by_pci_and_functions_left_out(sysfs: Path) -> None:
    (found,) = pci.ports(sysfs)
    assert (found["pci"], found["interface"], found["hca"]) == ("0000:01:00.0", "enp1s0f0np0", "rocep1s0f0")
    assert found["up"] and found["carrier"] and found["speed"] == 200_000 and found["total_vfs"] == 8
    assert found["firmware"] == "28.45.4028"


def test_lanes_and_what_the_bus_counted_are_read(sysfs: Path) -> None:
    (found,) = pci.ports(sysfs)
    assert (found["pcie"], found["pcie_most"]) == ("32.0 GT/s PCIe x4", "32.0 GT/s PCIe x16")
    assert found["pcie_errors"] == {"correctable": {"RxErr": 7}, "nonfatal": {"UnsupReq": 1}, "fatal": {}}
    (sysfs / "bus/pci/devices/0000:01:00.0/current_link_width").unlink()
    assert pci.ports(sysfs)[0]["pcie"] == ""


def test_a_port_without_a_driver_is_one_without_a_name(sysfs: Path) -> None:
    (sysfs / "bus/pci/devices/0000:01:00.0/net/enp1s0f0np0").rmdir()
    (found,) = pci.ports(sysfs)
    assert found["interface"] == "" and not found["up"] and found["speed"] == 0


def test_gpu_and_product(sysfs: Path) -> None:
    assert gpu.devices(sysfs) == ["0x2e12"]
    assert machine.system(str(sysfs / "none"), sysfs)["product"] == "NVIDIA NVIDIA_DGX_Spark"


def test_this_machine_can_be_read() -> None:
    assert machine.memory([os.getpid()])["gib"]["MemTotal"] > 0.1
    assert machine.disk("/not/there/yet")["free_gib"] > 0
    assert machine.clock()["now"] > 1e9
    assert set(gpu.read()[0]) == {"version", "why", "loaded"}
    assert host.system()["machine"] == os.uname().machine and host.cgroups()["version"] in (1, 2)


def test_content_counts_blocks_and_no_links(tmp_path: Path) -> None:
    (tmp_path / "blobs").mkdir()
    (tmp_path / "blobs/a").write_bytes(b"x" * (1 << 20))
    (tmp_path / "b").symlink_to(tmp_path / "blobs/a")
    assert machine.content_gib(str(tmp_path)) == pytest.approx(1 / 1024, rel=0.1)
    assert machine.content_gib(str(tmp_path / "none")) == 0


# --- what else lives there ------------------------------------------------------------------------------------------


def test_the_ground_of_this_machine_can_be_read(sysfs: Path) -> None:
    told = ground.read(sysfs, [os.getpid()])
    assert told["wifi"] == [] and told["containers"] == [] and told["mstflint"] is False
    (sysfs / "class/net/wlP9s9/phy80211").mkdir(parents=True)
    assert ground.read(sysfs, [])["wifi"] == ["wlP9s9"]


def test_a_policy_matters_where_no_cluster_has_rules_of_its_own() -> None:
    assert ground.forward("-P FORWARD DROP\n-A FORWARD -j DOCKER-USER\n") == "DROP"
    assert ground.forward("-P FORWARD DROP\n-A FORWARD -m comment -j KUBE-FORWARD\n") == ground.forward("") == ""


def test_who_is_logged_in_and_what_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """loginctl of systemd 255 and apt of Ubuntu 24.04, as they print."""
    for name, said in (
        ("loginctl", 'case "$2" in c1) echo "Type=wayland\nClass=greeter\nName=gdm";; 3) echo "Name=ada\nType=x11\n'
         'Class=user";; list-*|"--no-legend") echo "c1 120 gdm seat0 tty1\n 3 1000 ada seat0 tty2";; esac'),
        ("apt", 'echo "Listing...\nnvidia-driver-580-open/noble-updates 580.173.02-0ubuntu1 arm64 [upgradable from: '
         '580.159.03-0ubuntu1]\ncurl/noble-updates 8.5.0 arm64 [upgradable from: 8.4]"'),
    ):  # fmt: skip
        (tmp_path / name).write_text(f"#!/bin/sh\n{said}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(ground, "APT", tmp_path)
    assert ground.read(tmp_path, [])["session"] == "ada" and ground.read(tmp_path, [])["updates"] == []
    (tmp_path / "20auto-upgrades").write_text('APT::Periodic::Unattended-Upgrade "1";\n')
    assert ground.read(tmp_path, [])["updates"] == ["nvidia-driver-580-open"]


# --- the GPU --------------------------------------------------------------------------------------------------------

SMI = """#!/bin/sh
echo "$*" >>"$CALLS"
case "$1" in
  --query-compute-apps*) printf %s "$USERS" ;;
  --query-gpu=driver_version,*) [ -z "$OLD" ] || { echo 'Field "x" is not a valid field to query.'; exit 2; }
    echo "580.173.02, P0, 0x0000000000000044, 97, 611, 3003, 14.20, [N/A], 55" ;;
  --query-gpu=driver_version) echo 580.173.02 ;;
esac
"""
ARGUMENTS: dict[str, Any] = {
    "release_file": "/none", "paths": [], "folders": [], "listens": [], "reach": [], "cuda": False, "gpu_seconds": 0,
    "sysfs_root": "/none",
}  # fmt: skip


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH with an nvidia-smi; whatever asks CUDA leaves a line in the file that this gives."""
    (tmp_path / "nvidia-smi").write_text(SMI)
    (tmp_path / "nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    for name in ("USERS", "OLD"):
        monkeypatch.setenv(name, "")
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))
    monkeypatch.setattr(
        gpu, "ASK_CUDA", f"open({str(tmp_path / 'asked')!r}, 'a').write('x')\nprint('{{\"free\": 1073741824}}')"
    )
    return tmp_path / "asked"


def test_cuda_is_not_asked_unless_somebody_wants_it(asked: Path) -> None:
    """Cabling reads ports, and made a context on every node, also beside an engine that had left 0.3 GiB."""
    assert read(ARGUMENTS)["memory"]["cuda_free_gib"] is None and not asked.exists()
    assert read({**ARGUMENTS, "cuda": True})["memory"]["cuda_free_gib"] == 1.0 and asked.exists()


def test_a_gpu_that_somebody_uses_is_left_alone(asked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("USERS", f"{os.getpid()}\n")
    told = read({**ARGUMENTS, "cuda": True, "gpu_seconds": 2})
    assert not asked.exists() and told["memory"]["gpu_processes"][0]["pid"] == os.getpid()
    assert told["gpu"]["mhz"] == 611.0 and told["gpu"]["load"] == {}


def test_a_gpu_of_which_it_is_not_known_who_uses_it_is_left_alone_too(
    asked: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpu, "processes", lambda: None)
    told = read({**ARGUMENTS, "cuda": True})
    assert not asked.exists() and told["memory"]["gpu_processes"] == []


def test_a_machine_without_a_gpu_is_not_asked_at_all(asked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    told = read({**ARGUMENTS, "cuda": True})
    assert not asked.exists() and told["driver"]["why"] == "no nvidia-smi" and told["gpu"] == {"load": {}}


def test_what_the_gpu_says_of_itself(asked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    driver, state = gpu.read()
    assert driver["version"] == "580.173.02" and not driver["why"]
    assert (state["mhz"], state["percent"], state["watt"], state["watt_limit"]) == (611.0, 97.0, 14.2, None)
    assert state["held_by"] == ["power cap", "temperature, by hardware"]
    monkeypatch.setenv("OLD", "1")
    driver, state = gpu.read()
    assert driver["version"] == "580.173.02" and state == {}, "an nvidia-smi that knows fewer fields tells its version"


def test_the_program_that_asks_cuda_is_one_and_ends_without_cuda() -> None:
    """It ran on a GPU (docs/preflight.md); here it can only be compiled, and has no CUDA to ask."""
    compile(gpu.ASK_CUDA, "ask_cuda", "exec")
    assert gpu.ask_cuda(0) == {"free_gib": None, "load": {}} or gpu.ask_cuda(0)["free_gib"] > 0


@pytest.mark.parametrize(("broken", "ends", "said"), [("cuInit", 1, 0), ("cuLaunchKernel", 0, 1), ("none", 0, 2)])
def test_a_load_that_cannot_be_made_does_not_hide_what_is_free(broken: str, ends: int, said: int) -> None:
    driver = f"lambda name: type('Cuda', (), {{'__getattr__': lambda self, call: lambda *words: call == {broken!r}}})()"
    program = f"import ctypes\nctypes.CDLL = {driver}\n{gpu.ASK_CUDA}"
    done = subprocess.run([sys.executable, "-c", program, "0.2", "true"], capture_output=True, text=True)
    assert (done.returncode, len(done.stdout.splitlines())) == (ends, said), done.stderr


def test_a_load_that_failed_leaves_what_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "ASK_CUDA", "print('{\"free\": 2147483648}', flush=True)")
    assert gpu.ask_cuda(2) == {"free_gib": 2.0, "load": {}}
    said = json.dumps({"free": 2**31, "mhz": 2411.2, "said": "580.95, P0, 0x1, 98, 2405, 3003, 62.0, [N/A], 60\n"})
    monkeypatch.setattr(gpu, "ASK_CUDA", f"print({said!r})")
    load = gpu.ask_cuda(2)["load"]
    assert load["mhz"] == 2411.2 and load["state"]["watt"] == 62.0 and load["state"]["held_by"] == []


# --- memory, ports, answers -----------------------------------------------------------------------------------------

BUDDY = """Node 0, zone      DMA      1      1      1      1      1      1      1      1      1      1      1
Node 0, zone   Normal  {} 0 0 0 0 0 0 0 0 0 {}
"""


def test_crumbs_and_large_blocks_of_free_memory_are_told_apart() -> None:
    assert machine.blocks(BUDDY.format(262144, 512), 4096) == {"free_gib": 3.0, "large_gib": 2.0}
    # orders up to 13: a block of 4 MiB is no large one there, one of 32 MiB is
    wide = "Node 0, zone Normal 0 0 0 0 0 0 0 0 0 0 256 0 0 32\n"
    assert machine.blocks(wide, 4096) == {"free_gib": 2.0, "large_gib": 1.0}
    assert machine.blocks("", 4096) == {"free_gib": 0.0, "large_gib": 0.0}


def test_who_listens_on_a_port_is_told_with_process_and_unit() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        (row,) = host.listening([port, 1])
        assert (row["port"], row["pid"]) == (port, os.getpid()) and row["name"]
    assert host.listening([port]) == []


def test_the_unit_of_a_process_is_read_from_its_control_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "PROC", tmp_path)
    files(tmp_path, {"7/comm": "k3s-server", "7/cgroup": "1:name=systemd:/docker/5a/system.slice/k3s.service"})
    monkeypatch.setattr(host, "ETC", tmp_path)
    assert host.owner(7) == {"pid": 7, "name": "k3s-server", "unit": "k3s.service", "ours": False}
    files(tmp_path, {"systemd/system/k3s.service": "# Written by sparkloom (role k3s)."})
    assert host.owner(7)["ours"]
    files(tmp_path, {"8/comm": "sh", "8/cgroup": "0::/user.slice/user-1000.slice/session-3.scope"})
    assert host.owner(8)["unit"] == ""


def test_who_answers_is_told_by_ping_or_by_a_connection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ping").write_text('#!/bin/sh\nfor last; do :; done\n[ "$last" = 10.0.0.1 ] && echo 1 received\n')
    (tmp_path / "ping").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    refused = {"10.0.0.2"}

    def connect(place: tuple[str, int], timeout: float) -> socket.socket:
        raise ConnectionRefusedError if place[0] in refused else TimeoutError

    monkeypatch.setattr(socket, "create_connection", connect)
    targets = [{"name": f"n{number}", "address": f"10.0.0.{number}"} for number in (1, 2, 3)]
    assert [row["answers"] for row in host.reached(targets)] == [True, True, False]


def test_system_and_control_groups_of_a_raspberry_pi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ETC", "CGROUPS"):
        monkeypatch.setattr(host, name, tmp_path)
    files(
        tmp_path,
        {"os-release": 'PRETTY_NAME="Raspbian 12"\nID=raspbian\nID_LIKE=debian', "cgroup.controllers": "cpu pids"},
    )
    assert host.system()["families"] == ["raspbian", "debian"] and host.system()["os"] == "Raspbian 12"
    assert host.cgroups() == {"version": 2, "controllers": ["cpu", "pids"]}


def test_ufw_is_only_asked_where_it_is_switched_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "ETC", tmp_path)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/ufw").write_text("#!/bin/sh\necho Status: active\n")
    (tmp_path / "bin/ufw").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    assert host.firewall()["ufw"] == ""
    files(tmp_path, {"ufw/ufw.conf": "# /etc/ufw/ufw.conf\nENABLED=yes"})
    assert host.firewall()["ufw"] == "Status: active\n"
