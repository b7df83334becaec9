"""One node's part in a measurement: which device and GID, the same options on both ends, nothing where nothing is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.plugins.test_backup import module

perftest = module("perftest")
TEST = {
    "bytes": 65536,
    "iterations": 100,
    "queue_pairs": 4,
    "port": 18515,
    "peer": "192.168.100.12",
    "pf": "enp1s0f0np0",
}


def test_the_gid_of_an_address_is_found_by_content_not_by_index(tmp_path: Path) -> None:
    for device, table in {
        "rocep1s0f0": {0: ("fe80:0000:0000:0000:005b:00ff:fe00:0100", "RoCE v2")},
        "rocep1s0f0v1": {
            4: ("0000:0000:0000:0000:0000:ffff:c0a8:640b", "IB/RoCE v1"),
            7: ("0000:0000:0000:0000:0000:ffff:c0a8:640b", "RoCE v2"),
            9: ("0000:0000:0000:0000:0000:0000:0000:0000", "RoCE v2"),
        },
    }.items():
        for index, (gid, kind) in table.items():
            for folder, value in (("gids", gid), ("gid_attrs/types", kind)):
                path = tmp_path / f"class/infiniband/{device}/ports/1/{folder}/{index}"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(value + "\n")
    assert perftest.places(tmp_path) == {"192.168.100.11": ("rocep1s0f0v1", 7)}


def test_both_programs_are_bounded_and_never_share_a_port() -> None:
    bandwidth = " ".join(perftest.command("ib_write_bw", TEST, ("rocep1s0f0v1", 7)))
    latency = " ".join(perftest.command("ib_write_lat", TEST, ("rocep1s0f0v1", 7)))
    assert bandwidth == "ib_write_bw -d rocep1s0f0v1 -x 7 -F -n 100 -s 65536 -q 4 --report_gbits -p 18515"
    assert latency == "ib_write_lat -d rocep1s0f0v1 -x 7 -F -n 100 -s 8 -p 18516"


def test_a_run_that_does_not_end_says_so() -> None:
    assert perftest.run(["/bin/sh", "-c", "echo begun; sleep 5"], 1).endswith("no end within 1 s")


def test_a_silent_rail_is_not_asked_for_rdma(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(perftest, "ping", lambda test: {"ok": False, "small_ok": True})
    monkeypatch.setattr(perftest, "client", lambda *args: pytest.fail("it was"))
    (answer,) = perftest.measure([{**TEST, "address": "192.168.100.11"}], tmp_path, 1)
    assert answer["has_gid"] is False and "ib_write_bw" not in answer
