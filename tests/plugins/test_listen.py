"""The listener in real network namespaces: Sparks with four ports each, a bridge for every wire between them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sparkloom.site.cabling import look, shape
from tests.places import REPO
from tests.plugins.loading import module
from tests.site.cabling.test_cablings import INNER, NAMES, OUTER, Cable, inner, port, ring

links = module("sparkloom_listen")
PORTS = [name for cage in (INNER, OUTER) for name in NAMES[cage]]
RUN = """
import sys
import ansible.module_utils
ansible.module_utils.__path__.append("plugins/module_utils")
from ansible.module_utils.testing import patch_module_args
from tests.plugins.loading import module
import json
with patch_module_args(json.loads(sys.argv[1])):
    module("sparkloom_listen").main()
"""
SAY_LLDP = """
import socket, sys
made = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
made.bind((sys.argv[1], 0))
made.send(bytes.fromhex(sys.argv[2]))
"""
needs_root = pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("ip"), reason="makes network namespaces: needs root and iproute2"
)


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


class Bench:
    """Made-up Sparks; a wire is a bridge that both halves of each of its cages are plugged into."""

    def __init__(self, nodes: list[str]) -> None:
        self.nodes = {node: f"slc{os.getpid()}{node}" for node in nodes}
        self.middle = f"slc{os.getpid()}m"
        for name in (self.middle, *self.nodes.values()):
            ip("netns", "add", name)

    def plug(self, number: int, cable: Cable) -> None:
        bridge = f"wire{number}"
        ip("-n", self.middle, "link", "add", bridge, "type", "bridge")
        ip("-n", self.middle, "link", "set", bridge, "up")
        for node, cage in cable:
            for half, name in enumerate(NAMES[cage]):
                end = f"{node}c{cage}{half}"
                ip("-n", self.middle, "link", "add", end, "type", "veth", "peer", "name", name,
                   "netns", self.nodes[node])  # fmt: skip
                ip("-n", self.middle, "link", "set", end, "master", bridge, "up")
                ip("-n", self.nodes[node], "link", "set", name, "up")

    def flags(self, node: str, name: str) -> list[str]:
        told = subprocess.run(
            ["ip", "-n", self.nodes[node], "-json", "link", "show", name], check=True, capture_output=True
        )
        return list(json.loads(told.stdout)[0]["flags"])

    def start(self, node: str, site: str = "home", seconds: float = 2.5) -> subprocess.Popen[str]:
        args = {"node": node, "site": site, "ports": PORTS, "seconds": seconds}
        command = ["ip", "netns", "exec", self.nodes[node], sys.executable, "-c", RUN, json.dumps(args)]
        env = {**os.environ, "PYTHONPATH": f"{REPO}:{REPO}/scripts"}
        return subprocess.Popen(command, cwd=REPO, env=env, text=True, stdout=subprocess.PIPE)

    def listen(self, **sites: str) -> dict[str, dict[str, Any]]:
        running = {node: self.start(node, sites.get(node, "home")) for node in self.nodes}
        return {node: json.loads(process.communicate(timeout=60)[0]) for node, process in running.items()}

    def judge(self, told: dict[str, dict[str, Any]]) -> shape.Found:
        machines = {
            node: {"ports": [port(node, cage, half) for cage in (INNER, OUTER) for half in (0, 1)]} for node in told
        }
        return shape.judge(list(self.nodes), look.merge(machines, told), "enP7s7")

    def close(self) -> None:
        for name in (self.middle, *self.nodes.values()):
            subprocess.run(["ip", "netns", "del", name], capture_output=True)


@pytest.fixture
def bench() -> Iterator[Bench]:
    made = Bench(["spark1", "spark2", "spark3"])
    try:
        yield made
    finally:
        made.close()


@needs_root
def test_a_ring_is_heard_without_one_address(bench: Bench) -> None:
    for number, cable in enumerate(ring(list(bench.nodes))):
        bench.plug(number, cable)
    found = bench.judge(bench.listen())
    assert found.kind == "a ring of 3" and len(found.wires) == 3
    assert [finding.rule for finding in found.findings] == ["ring"]


@needs_root
def test_a_port_that_is_off_is_seen_and_off_again_and_a_cable_in_the_wrong_cage_named(bench: Bench) -> None:
    bench.plug(0, (("spark1", INNER), ("spark2", INNER), ("spark3", OUTER)))
    for name in NAMES[INNER]:
        ip("-n", bench.nodes["spark2"], "link", "set", name, "down")
    told = bench.listen()
    assert sorted(told["spark2"]["woken"]) == sorted(NAMES[INNER]) and not told["spark2"]["changed"]
    assert "UP" not in bench.flags("spark2", NAMES[INNER][0]) and "UP" in bench.flags("spark1", NAMES[INNER][0])
    found = bench.judge(told)
    assert (found.kind, found.rail_gbit) == ("a switch", 10), "what veth says of itself"
    assert [(finding.where, finding.rule) for finding in found.findings] == [("spark3", "cage")]


@needs_root
def test_another_site_on_the_same_switch_is_not_heard(bench: Bench) -> None:
    bench.plug(0, inner(*bench.nodes))
    told = bench.listen(spark3="upstairs")
    assert {row["node"] for row in told["spark1"]["heard"]} == {"spark1", "spark2"}


@needs_root
def test_a_switch_that_says_its_name_is_understood(bench: Bench) -> None:
    bench.plug(0, inner("spark1"))
    process = bench.start("spark1", seconds=4)
    said = lldp_frame(b"rack-switch")
    for _ in range(30):
        subprocess.run(
            ["ip", "netns", "exec", bench.middle, sys.executable, "-c", SAY_LLDP, "spark1c00", said.hex()], check=True
        )
        if process.poll() is not None:
            break
    (told,) = json.loads(process.communicate(timeout=60)[0])["lldp"]
    assert told == {
        "interface": NAMES[INNER][0],
        "chassis": "48:a9:8a:00:00:01",
        "port": "qsfp1",
        "system": "rack-switch",
    }


def lldp_frame(name: bytes) -> bytes:
    def part(kind: int, value: bytes) -> bytes:
        return (kind << 9 | len(value)).to_bytes(2, "big") + value

    chassis = bytes.fromhex("48a98a000001")
    parts = part(1, b"\x04" + chassis) + part(2, b"\x05qsfp1") + part(3, b"\0\x78") + part(5, name) + part(0, b"")
    return links.LLDP_GROUP + chassis + links.LLDP.to_bytes(2, "big") + parts


@pytest.mark.parametrize("cut", [0, 1, 13, 15, 17, 20, 24, 30])
def test_a_broken_frame_is_no_crash(cut: int) -> None:
    assert set(links.lldp(lldp_frame(b"x\xff\x00")[:cut])) == {"chassis", "port", "system"}
    whole = links.frame("02:00:00:00:00:01", {"site": "home", "node": "spark1", "port": "a"})
    assert links.heard(whole) == {"site": "home", "node": "spark1", "port": "a"}
    assert len(whole) >= 60 and links.heard(whole[:cut]) is None


def test_what_is_no_words_of_ours_is_not_heard() -> None:
    head = b"\xff" * 12 + b"\x88\xb5"
    for said in (b"other", links.MARK + b"[1]", links.MARK + b"{}", links.MARK + b"\xff"):
        assert links.heard(head + said) is None


def test_only_neighbours_that_answer_now_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A STALE entry may be of a cable that was moved since."""
    rows = [
        {"dev": "a", "lladdr": "02:00:00:00:00:01", "state": ["REACHABLE"]},
        {"dev": "a", "lladdr": "02:00:00:00:00:02", "state": ["STALE"]},
        {"dev": "a", "state": ["FAILED"]},
        {"dev": "wlan0", "lladdr": "02:00:00:00:00:03", "state": ["REACHABLE"]},
    ]
    monkeypatch.setattr(links, "run", lambda *_: json.dumps(rows))
    assert links.neighbours(["a", "b"]) == [{"interface": "a", "mac": "02:00:00:00:00:01"}]
    monkeypatch.setattr(links, "run", lambda *_: "")
    assert links.neighbours(["a"]) == []


def test_ports_that_are_not_there_are_not_listened_on(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a/carrier").write_text("1\n")
    (tmp_path / "a/speed").write_text("200000\n")
    assert links.links(tmp_path, ["a"]) == {"a": {"carrier": True, "speed": 200_000}}
