"""The rack's stand-in for perftest: what it prints is read as perftest's own, and a slow link makes it slow."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sparkloom.site import perftest
from tests.places import REPO

ORIGINAL = REPO / "testbed/make/kind/node/usr/local/sbin/ib_write_bw"


class Ends:
    """Two devices of one made-up machine, on 127.0.0.1 and 127.0.0.2."""

    def __init__(self, root: Path) -> None:
        self.root, self.classes = root, root / "infiniband"
        for name in (perftest.BANDWIDTH, perftest.LATENCY):
            (root / name).write_text(ORIGINAL.read_text().replace("/sys/class/infiniband", str(self.classes)))
        for device, last in (("roce0", 1), ("roce1", 2)):
            self.device(device, f"0000:0000:0000:0000:0000:ffff:7f00:000{last}", "200 Gb/sec (4X HDR)")

    def device(self, name: str, gid: str, rate: str) -> None:
        port = self.classes / name / "ports/1"
        values = {"rate": rate, "gids/3": gid, "gid_attrs/types/3": "RoCE v2", "gid_attrs/ndevs/3": "lo"}
        for path, value in values.items():
            (port / path).parent.mkdir(parents=True, exist_ok=True)
            (port / path).write_text(value + "\n")

    def run(self, tool: str, port: int) -> str:
        words = ["-x", "3", "-F", "-n", "100", "-s", "65536", "-p", str(port)]
        server = subprocess.Popen([sys.executable, self.root / tool, "-d", "roce0", *words], stdout=subprocess.DEVNULL)
        try:
            for _ in range(50):
                client = [sys.executable, self.root / tool, "-d", "roce1", *words, "127.0.0.1"]
                done = subprocess.run(client, capture_output=True, text=True, timeout=60)
                if "Couldn't connect" not in done.stdout:
                    return done.stdout + done.stderr
                time.sleep(0.2)
            raise AssertionError(done.stdout)
        finally:
            server.kill()
            server.wait()


@pytest.fixture
def ends(tmp_path: Path) -> Ends:
    return Ends(tmp_path)


def test_both_programs_are_one_file() -> None:
    assert ORIGINAL.with_name(perftest.LATENCY).readlink() == Path(perftest.BANDWIDTH)
    assert shutil.which("python3")


@pytest.mark.parametrize(("rate", "least", "most"), [("200 Gb/sec (4X HDR)", 88, 110), ("13 Gb/sec (1X SDR)", 12, 13)])
def test_bandwidth_follows_the_slower_end(ends: Ends, rate: str, least: float, most: float) -> None:
    ends.device("roce0", "0000:0000:0000:0000:0000:ffff:7f00:0001", rate)
    result = perftest.read(ends.run(perftest.BANDWIDTH, 28515))
    assert result is not None and result.gbit is not None and least <= result.gbit <= most
    assert result.device == "roce1" and result.mtu == 4096


def test_latency_is_read_too(ends: Ends) -> None:
    result = perftest.read(ends.run(perftest.LATENCY, 28516))
    assert result is not None and result.microseconds == 1.47


def test_a_link_local_gid_leads_nowhere(ends: Ends) -> None:
    ends.device("roce1", "fe80:0000:0000:0000:005b:00ff:fe00:0100", "200 Gb/sec (4X HDR)")
    said = ends.run(perftest.BANDWIDTH, 28517)
    assert perftest.read(said) is None and perftest.why(said).startswith("Failed to modify QP")
