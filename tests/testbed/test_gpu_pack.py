"""The pack for a machine with a GPU, as far as it needs neither a download nor a GPU."""

from __future__ import annotations

import struct
import subprocess
import sys
from pathlib import Path

import pytest

from sparkloom.inputs import profile
from sparkloom.inputs.inventory import load as inventory
from sparkloom.launch.resolve import resolve
from testbed.beds.gpu import kubelet, predicted
from testbed.make.gpu import pack, thin
from tests.places import REPO

PROFILES = sorted((REPO / "testbed/make/gpu/profiles").glob("*.yml"))


def entry(architecture: int, payload: bytes) -> bytes:
    head = struct.pack("<HHIQ", 2, 0x101, 64, len(payload)).ljust(28, b"\0") + struct.pack("<I", architecture)
    return head.ljust(64, b"\0") + payload


def test_kernels_of_other_gpus_are_blanked_and_nothing_else(tmp_path: Path) -> None:
    entries = entry(80, b"a" * 40) + entry(90, b"h" * 24) + entry(120, b"b" * 16)
    binary = thin.MAGIC + struct.pack("<HHQ", 1, 16, len(entries)) + entries
    library = tmp_path / "ops.so"
    library.write_bytes(b"before" + thin.MAGIC + b"no header" + binary + b"after")
    before = library.read_bytes()
    assert thin.thin(library, 90) == 56
    now = library.read_bytes()
    assert now == before.replace(b"a" * 40, bytes(40)).replace(b"b" * 16, bytes(16)) and b"h" * 24 in now
    assert thin.thin(library, 90) == 56 and library.read_bytes() == now


def test_all_that_is_packed_of_the_product_is_there() -> None:
    assert [path for path in pack.TAKES if not (REPO / path).exists()] == []


@pytest.mark.parametrize("file", PROFILES, ids=lambda path: path.stem)
def test_its_pods_look_for_a_gpu(file: Path) -> None:
    assert resolve(profile.load(str(file)), inventory(REPO / "inventories/gb10/hosts.yml")).gpu


def test_a_device_plugin_s_answer_is_read_without_its_schema() -> None:
    inner = b"\x0a\x03key\x12\x05value"
    assert list(kubelet.fields(b"\x0a" + bytes([len(inner)]) + inner + b"\x10\x96\x01")) == [(1, inner), (2, 150)]
    assert dict(kubelet.fields(inner)) == {1: b"key", 2: b"value"}


def test_the_room_is_skipped_in_words_where_there_is_no_gpu() -> None:
    words = ["-m", "pytest", "-q", "-rs", "-n0", "-p", "no:cacheprovider", "tests/gpu/test_7_speaks.py"]
    done = subprocess.run(
        [sys.executable, *words], cwd=REPO, env={"PATH": "/usr/bin:/bin"}, capture_output=True, text=True
    )
    assert "1 skipped" in done.stdout and "no GPU here" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("kernel", ["triton", "fp8"])
def test_what_a_run_there_is_compared_with_can_be_computed(kernel: str) -> None:
    """On the machine with a GPU each run of it costs minutes of a lent card."""
    assert predicted.memory(4096, 78.0, kernel)["kv_pool_gib"] > 0
    rows = [{"batch": batch, "context": 1024, "seconds": 0.004, "splits": 0} for batch in (1, 2, 4)]
    assert predicted.time(rows, kernel)["rms"] < 0.1
