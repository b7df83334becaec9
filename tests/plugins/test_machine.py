"""The machine module reads a made-up sysfs as it reads a real one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.plugins.loading import module

machine = module("sparkloom_machine")


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
    (found,) = machine.ports(sysfs)
    assert (found["pci"], found["interface"], found["hca"]) == ("0000:01:00.0", "enp1s0f0np0", "rocep1s0f0")
    assert found["up"] and found["carrier"] and found["speed"] == 200_000 and found["total_vfs"] == 8
    assert found["firmware"] == "28.45.4028" and found["pcie"] == "32.0 GT/s PCIe x4"


def test_a_port_without_a_driver_is_one_without_a_name(sysfs: Path) -> None:
    (sysfs / "bus/pci/devices/0000:01:00.0/net/enp1s0f0np0").rmdir()
    (found,) = machine.ports(sysfs)
    assert found["interface"] == "" and not found["up"] and found["speed"] == 0


def test_gpu_and_product(sysfs: Path) -> None:
    assert machine.gpus(sysfs) == ["0x2e12"]
    assert machine.system(str(sysfs / "none"), sysfs)["product"] == "NVIDIA NVIDIA_DGX_Spark"


def test_this_machine_can_be_read() -> None:
    assert machine.memory()["gib"]["MemTotal"] > 0.1
    assert machine.disk("/not/there/yet")["free_gib"] > 0
    assert machine.clock()["now"] > 1e9
    assert set(machine.driver()) == {"version", "why", "loaded"}


def test_content_counts_blocks_and_no_links(tmp_path: Path) -> None:
    (tmp_path / "blobs").mkdir()
    (tmp_path / "blobs/a").write_bytes(b"x" * (1 << 20))
    (tmp_path / "b").symlink_to(tmp_path / "blobs/a")
    assert machine.content_gib(str(tmp_path)) == pytest.approx(1 / 1024, rel=0.1)
    assert machine.content_gib(str(tmp_path / "none")) == 0
