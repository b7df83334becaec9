"""The node's stand-in for mlx5: GID tables and link facts follow the interface, and show what a fault says."""

from __future__ import annotations

import errno
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from testbed.base import names

VF = {"netdev": "enp1s0f0v0", "pci": "0000:01:00.2", "hca": "rocep1s0f0v0", "rail": "a", "speed": 200000}
ZERO = ":".join(["0000"] * 8)


@pytest.fixture
def facts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    path = names.NODE_FILES / "usr/local/lib/sparkloom-testbed/facts.py"
    spec = importlib.util.spec_from_file_location("rack_node_facts", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for name in ("INFINIBAND", "PCI", "NET"):
        monkeypatch.setattr(module, name, tmp_path / name.lower())
    monkeypatch.setattr(module, "FAULTS", tmp_path / "faults.json")
    monkeypatch.setattr(module, "overlay_interface", lambda real, upper: None)
    return module


def interface(*ipv4: str, up: bool = True, name: str = "enp1s0f0v0") -> dict[str, Any]:
    return {
        "ifname": name,
        "address": "02:5b:1b:00:02:04",
        "flags": ["UP", "LOWER_UP"] if up else ["UP", "NO-CARRIER"],
        "addr_info": [{"family": "inet", "local": ip, "scope": "global"} for ip in ipv4],
        "stats64": {"rx": {"bytes": 4000}, "tx": {"bytes": 800}},
    }


def port(facts: ModuleType) -> Path:
    return Path(facts.INFINIBAND) / "rocep1s0f0v0/ports/1"


def gids(facts: ModuleType) -> list[str]:
    return [(port(facts) / f"gids/{i}").read_text().strip() for i in range(facts.GIDS)]


def test_without_ipv4_only_the_link_local_gid_is_there(facts: ModuleType) -> None:
    facts.show(VF, interface(), True)
    assert gids(facts)[:2] == ["fe80:0000:0000:0000:005b:1bff:fe00:0204"] * 2
    assert set(gids(facts)[2:]) == {ZERO}
    assert not (port(facts) / "gid_attrs/types/2").exists()


def test_ipv4_gives_a_roce_v1_and_a_v2_entry(facts: ModuleType) -> None:
    facts.show(VF, interface("10.10.10.2"), True)
    assert gids(facts)[2:4] == ["0000:0000:0000:0000:0000:ffff:0a0a:0a02"] * 2
    types = [(port(facts) / f"gid_attrs/types/{i}").read_text().strip() for i in (2, 3)]
    assert types == ["IB/RoCE v1", "RoCE v2"]


def test_entries_keep_their_place_and_free_places_are_used_again(facts: ModuleType) -> None:
    facts.show(VF, interface("10.0.0.1", "10.0.0.2"), True)
    facts.show(VF, interface("10.0.0.2"), True)
    assert gids(facts)[3] == ZERO and gids(facts)[5].endswith("0a00:0002")
    facts.show(VF, interface("10.0.0.2", "10.0.0.3"), True)
    assert gids(facts)[3].endswith("0a00:0003") and gids(facts)[5].endswith("0a00:0002")


def test_in_a_pod_the_entry_names_the_pods_interface(facts: ModuleType) -> None:
    facts.show(VF, interface("10.0.0.1", name="net1"), False)
    assert (port(facts) / "gid_attrs/ndevs/3").read_text().strip() == "net1"


def test_state_rate_and_counters_follow_the_link(facts: ModuleType) -> None:
    facts.show(VF, interface(), True)
    assert (port(facts) / "state").read_text().strip() == "4: ACTIVE"
    assert (port(facts) / "counters/port_rcv_data").read_text().strip() == "1000"
    facts.show(VF, interface(up=False), True)
    assert (port(facts) / "state").read_text().strip() == "1: DOWN"
    assert (Path(facts.NET) / "enp1s0f0v0/speed").read_text().strip() == "-1"


@pytest.mark.parametrize("rail", ["a", "b"])
def test_faults_show_on_their_rail_only(facts: ModuleType, rail: str) -> None:
    Path(facts.FAULTS).write_text(json.dumps({"slow": {rail: {}}, "no-gid": {rail: {}}}))
    facts.show(VF, interface("10.0.0.1"), True)
    hit = rail == "a"
    assert (Path(facts.NET) / "enp1s0f0v0/speed").read_text().strip() == ("13000" if hit else "200000")
    assert (port(facts) / "rate").read_text().startswith("13 Gb/sec" if hit else "200 Gb/sec")
    assert (gids(facts)[3] == ZERO) is hit


def test_a_device_that_is_gone_comes_back_whole(facts: ModuleType) -> None:
    facts.show(VF, interface("10.0.0.1"), True)
    Path(facts.FAULTS).write_text('{"no-rdma-device": {"a": {}}}')
    facts.show(VF, interface("10.0.0.1"), True)
    assert not port(facts).exists()
    Path(facts.FAULTS).unlink()
    facts.show(VF, interface("10.0.0.1"), True)
    assert gids(facts)[3].endswith("0a00:0001")
    assert (port(facts) / "state").exists()


def test_memory_that_an_engine_kept_is_missing_from_what_is_available(facts: ModuleType, tmp_path: Path) -> None:
    memory = facts.Meminfo.__new__(facts.Meminfo)  # without the mount over /proc/meminfo
    memory.real, memory.shown = os.open("/proc/meminfo", os.O_RDONLY), os.open(tmp_path / "m", os.O_RDWR | os.O_CREAT)

    def available() -> int:
        memory.update()
        rows = (tmp_path / "m").read_text().splitlines()
        return next(int(row.split()[1]) for row in rows if row.startswith("MemAvailable:"))

    before = available()
    Path(facts.FAULTS).write_text('{"memory-kept": {"a": {}, "b": {}}}')
    assert before - available() == pytest.approx(facts.KEPT_MEMORY_KIB, rel=0.05)
    Path(facts.FAULTS).unlink()
    assert available() == pytest.approx(before, rel=0.05)


def test_a_function_that_moves_while_it_is_looked_at_ends_nothing(
    facts: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a rack in the middle of a restart this ended the unit: OSError 116, Stale file handle."""

    def moving(*_: Any) -> None:
        raise OSError(errno.ESTALE, "Stale file handle", "/sys/class/net/enP2p1s0f0v0")

    monkeypatch.setattr(facts, "show", moving)
    facts.show_unless_it_moves(VF, None, False)
    monkeypatch.setattr(facts, "show", lambda *_: (_ for _ in ()).throw(OSError(errno.EACCES, "no")))
    with pytest.raises(OSError, match="no"):
        facts.show_unless_it_moves(VF, None, False)


def test_started_again_it_reads_the_machine_s_memory_and_not_its_own_words(tmp_path: Path) -> None:
    """With memory-kept it took 60 GiB off what it had shown, every second: -1,321,520,400 kB were free on a node."""
    (tmp_path / "faults.json").write_text('{"memory-kept": {"a": {}}}')
    program = str(names.NODE_FILES / "usr/local/lib/sparkloom-testbed/facts.py")
    script = f"""
import importlib.util, pathlib
def started():
    spec = importlib.util.spec_from_file_location("facts", {program!r})
    module = importlib.util.module_from_spec(spec); spec.loader.exec_module(module)
    module.RUN = pathlib.Path({str(tmp_path)!r})
    module.FAULTS = module.RUN / "faults.json"
    memory = module.Meminfo()
    memory.update(); memory.update()
    return int(open("/proc/meminfo").read().split("MemAvailable:")[1].split()[0])
first, again = started(), started()
assert abs(first - again) < 8 << 20, (first, again)
"""
    done = subprocess.run(["unshare", "--mount", sys.executable, "-c", script], capture_output=True, text=True)
    if "Operation not permitted" in done.stderr:
        pytest.skip("no mount namespace here")
    assert done.returncode == 0, done.stderr


def test_a_port_shows_its_lanes_and_half_of_them_with_the_fault(facts: ModuleType) -> None:
    port = {"netdev": "enP2p1s0f0np0", "pci": "0002:01:00.0", "hca": "roceP2p1s0f0", "rail": "b", "speed": 200000}
    width = Path(facts.PCI) / "0002:01:00.0/current_link_width"
    facts.show(port, None, True)
    assert width.read_text() == "4\n"
    Path(facts.FAULTS).write_text('{"narrow": {"b": {}}}')
    facts.show(port, None, True)
    assert width.read_text() == "2\n"


def test_free_memory_is_shown_in_large_blocks_and_in_crumbs_with_the_fault(facts: ModuleType, tmp_path: Path) -> None:
    blocks = facts.Blocks.__new__(facts.Blocks)  # without the mount over /proc/buddyinfo
    blocks.shown = os.open(tmp_path / "b", os.O_RDWR | os.O_CREAT)

    def counts() -> list[int]:
        blocks.update(64 << 20)
        (line,) = (tmp_path / "b").read_text().splitlines()
        return [int(word) for word in line.partition("Normal")[2].split()]

    assert counts() == [0] * 13 + [2048]
    Path(facts.FAULTS).write_text('{"crumbs": {"a": {}}}')
    assert counts()[4] == 1 << 20 and sum(counts()) == 1 << 20


def test_the_gpu_of_a_slow_or_a_hot_node_is_busy_and_slow(tmp_path: Path) -> None:
    program = (names.NODE_FILES / "usr/local/sbin/nvidia-smi").read_text()
    faults = tmp_path / "faults.json"
    copy = tmp_path / "nvidia-smi"
    copy.write_text(program.replace("/var/lib/sparkloom-testbed/faults.json", str(faults)))
    asked = "pstate,utilization.gpu,clocks.sm,power.draw,clocks_event_reasons.active"
    query = [f"--query-gpu={asked}", "--format=csv,noheader,nounits"]

    def said() -> str:
        return subprocess.run([sys.executable, copy, *query], capture_output=True, text=True, check=True).stdout.strip()

    assert said() == "P8, 0, 208, 4.12, 0x0000000000000001"
    faults.write_text('{"slow-gpu": {"a": {}, "b": {}}}')
    assert said() == "P0, 97, 611, 14.20, 0x0000000000000000"
    faults.write_text('{"hot-gpu": {"a": {}, "b": {}}}')
    assert said() == "P0, 97, 1410, 61.00, 0x0000000000000020", "temperature, of NVML's reasons"


def test_the_blocks_are_bound_over_the_kernels_own_also_when_started_again(tmp_path: Path) -> None:
    program = str(names.NODE_FILES / "usr/local/lib/sparkloom-testbed/facts.py")
    script = f"""
import importlib.util, pathlib
spec = importlib.util.spec_from_file_location("facts", {program!r})
facts = importlib.util.module_from_spec(spec); spec.loader.exec_module(facts)
facts.RUN = pathlib.Path({str(tmp_path)!r})
for free in (64 << 20, 32 << 20):
    facts.Blocks().update(free)
    assert open("/proc/buddyinfo").read().split()[-1] == str(free // (32 << 10)), open("/proc/buddyinfo").read()
"""
    done = subprocess.run(["unshare", "--mount", sys.executable, "-c", script], capture_output=True, text=True)
    if "Operation not permitted" in done.stderr:
        pytest.skip("no mount namespace here")
    assert done.returncode == 0, done.stderr
