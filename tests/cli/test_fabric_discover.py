"""`sparkloom fabric discover` from its words to the file: through the real playbook, and with made-up cables."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from sparkloom import case
from sparkloom.base.errors import Refused
from sparkloom.cli import program
from sparkloom.inputs import inventory
from sparkloom.site.cabling import declare, look
from sparkloom.site.checks import ports
from testbed.beds.cabling import INNER, Bench
from tests import inventories
from tests.cli.test_cli import COMMAND, run
from tests.cli.window import seen as terminal
from tests.journeys.terminal import Terminal
from tests.namespaces import needs_namespaces
from tests.places import REPO
from tests.site.cabling.test_cablings import FOUR, NAMES, OUTER, facts, ring

ONE_NODE, TWO_NODES = "nvidia--nemotron-3-super-120b-a12b-nvfp4--vllm-1node", "nvidia--minimax-m2.5-nvfp4--2node"
THREE_NODES = "nvidia--minimax-m2.5-nvfp4--pp3"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """The shipped inventory with four Sparks that are this machine, which has no ports under a made-up sysfs."""
    folder = inventories.own(tmp_path, "home")
    hosts = yaml.safe_load((folder / "hosts.yml").read_text())
    hosts["all"]["children"]["sparks"]["vars"] = {
        "ansible_connection": "local", "ansible_python_interpreter": sys.executable, "cabling_seconds": 0.1,
        "cabling_sysfs_root": str(tmp_path / "sys"),
    }  # fmt: skip
    (folder / "hosts.yml").write_text(yaml.safe_dump(hosts))
    return folder


def test_the_playbook_is_run_and_machines_without_a_port_are_named(site: Path) -> None:
    cluster = site / "group_vars/all/cluster.yml"
    cluster.write_text(cluster.read_text().replace("name: gb10", "name: discover-test"))
    before = (site / "group_vars/all/fabric.yml").read_text()
    try:
        command = [*COMMAND, "fabric", "discover", "-i", str(site), "--json"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=240)
        assert done.returncode == 1, done.stderr
        told = json.loads(done.stdout)
        assert told["kind"] == "no fabric" and not told["fabric"]["written"]
        rows = [(row["node"], row["check"], row["found"]) for row in told["findings"]]
        assert rows == [(node, "cable", "no ConnectX-7 on the PCI bus") for node in FOUR]
        assert (site / "group_vars/all/fabric.yml").read_text() == before
    finally:
        shutil.rmtree(REPO / "build/discover-test", ignore_errors=True)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(FOUR[:3], tmp_path / "bench")
    try:
        yield made
    finally:
        made.close()


WRONG = """\
spark1  inner cage ●──┐     200 Gb/s
        outer cage ●──│──┐  200 Gb/s
                      │  │
spark2  inner cage ●──┘  │
        outer cage ●──┐  │  200 Gb/s
                      │  │
spark3  inner cage ●──│──┘
        outer cage ●──┘

found: a ring of 3
"""


@needs_namespaces
def test_an_owner_moves_the_plugs_that_are_named_and_the_ring_is_written(
    site: Path, bench: Bench, tmp_path: Path
) -> None:
    """Typed with nothing replaced: what becomes root on a node goes into its namespace, where real frames are heard."""
    first, second, third = ring(FOUR[:3])
    (one, two), (_, three) = first, second
    hosts = yaml.safe_load((site / "hosts.yml").read_text())
    sparks = hosts["all"]["children"]["sparks"]
    sparks["hosts"] = {node: {**sparks["hosts"][node], **on(bench, node, tmp_path)} for node in FOUR[:3]}
    sparks["vars"]["cabling_seconds"] = 12  # a busy machine starts the three seconds apart
    (site / "hosts.yml").write_text(yaml.safe_dump(hosts))
    cluster = site / "group_vars/all/cluster.yml"
    cluster.write_text(cluster.read_text().replace("name: gb10", "name: discover-ring"))
    try:
        owner = Terminal(tmp_path, ANSIBLE_BECOME_ALLOW_SAME_USER="1")  # root already, yet not in the namespace
        discover = f"cd {REPO} && sparkloom fabric discover -i {site}"
        bench.cable(one, (two[0], INNER))
        bench.cable((two[0], OUTER), three)
        bench.cable(*third)
        seen = owner.type(discover, 1).has("spark1's inner cage should go to spark2's outer cage")
        seen.has("spark2's inner cage should go to spark3's outer cage", "fabric.yml is as it was")
        assert WRONG in "\n".join(line.rstrip() for line in seen.lines) + "\n"
        bench.unplug()
        for cable in (first, second, third):
            bench.cable(*cable)
        seen = owner.type(discover).has("found: a ring of 3", "spark2's inner cage - spark3's outer cage (200 Gb/s)")
        seen.has("wrote ")
        assert inventory.load(site).fabric.ring == FOUR[:3]
        bench.pull(2)  # spark3's inner cage to spark1's outer one
        seen = owner.type(f"export NO_UNICODE=1; {discover}", 1)
        seen.has("not the ring that fabric.yml asks for", "spark3's inner cage should go to spark1's outer cage")
        assert "spark2  inner cage o--|--+  200 Gb/s" in seen.lines and inventory.load(site).fabric.ring
        owner.close()
    finally:
        shutil.rmtree(REPO / "build/discover-ring", ignore_errors=True)


def on(bench: Bench, node: str, folder: Path) -> dict[str, str]:
    """The variables of a host that is a namespace here."""
    sudo = folder / f"sudo-{node}"
    inside = " ".join(bench.inside(node))
    sudo.write_text(f'#!/bin/sh\nwhile [ "$1" != /bin/sh ]; do shift; done\nexec {inside} "$@"\n')
    sudo.chmod(0o755)
    return {"ansible_become_exe": str(sudo), "cabling_sysfs_root": str(bench.sysfs(node))}


def ask(monkeypatch: pytest.MonkeyPatch, told: dict[str, Any], *words: str) -> int:
    monkeypatch.setattr(look, "ask", lambda *_: told)
    monkeypatch.setattr(sys, "argv", ["sparkloom", "fabric", "discover", *words])
    with pytest.raises(SystemExit) as ended:
        program.main()
    return int(ended.value.code or 0)


def test_the_file_is_written_and_a_second_look_finds_it_right(
    site: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    told = facts(FOUR, tuple((node, OUTER) for node in FOUR), gbit=100)
    assert ask(monkeypatch, told, "-i", str(site), "--dry-run") == 0
    assert "without --dry-run it would be written" in capsys.readouterr().out
    assert inventory.load(site).fabric.rail_gbit == 200
    assert ask(monkeypatch, told, "-i", str(site / "hosts.yml")) == 0
    said = capsys.readouterr().out
    assert "found: a switch" in said and "spark4's outer cage (100 Gb/s)" in said and "wrote " in said
    fabric = inventory.load(site).fabric
    assert (fabric.rails[1].pf, fabric.rails[1].pci, fabric.rail_gbit) == ("enP2p1s0f1np1", "0002:01:00.1", 100)
    assert ask(monkeypatch, told, "-i", str(site)) == 0 and "says so already" in capsys.readouterr().out


def test_what_cannot_be_served_is_refused_and_nothing_written(
    site: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ask(monkeypatch, facts(FOUR, *ring(FOUR)), "-i", str(site)) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert "found: a ring of 4" in said and "is as it was" in said and "relayed" in said
    assert not list(site.rglob("*.before"))


@pytest.mark.parametrize(
    ("encoding", "environ", "sign"),
    [
        ("utf-8", {"LANG": "C.UTF-8"}, "●──┐        200 Gb/s"), ("ascii", {}, "o--+        200 Gb/s"),
        ("utf-8", {"NO_UNICODE": "1"}, "o--+        200 Gb/s"), ("utf-8", {"LC_ALL": "C"}, "o--+        200 Gb/s"),
        ("utf-8", {"LANG": "POSIX"}, "o--+        200 Gb/s"),
    ],
)  # fmt: skip
def test_the_picture_is_of_what_a_terminal_can_show(
    site: Path, monkeypatch: pytest.MonkeyPatch, encoding: str, environ: dict[str, str], sign: str
) -> None:
    for name in ("LC_ALL", "LANG", "NO_UNICODE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    told = facts(FOUR, *ring(FOUR))
    monkeypatch.setattr(look, "ask", lambda *_: told)
    shown = terminal(80, "fabric", "discover", "-i", str(site), encoding=encoding)
    first = next(number for number, line in enumerate(shown.lines) if line.startswith("spark1  inner cage"))
    assert shown.lines[first].endswith(sign)
    assert shown.lines[first + 10].startswith("        outer cage") and shown.lines[first + 12] == "found: a ring of 4"
    assert max(map(len, shown.lines[first : first + 12])) <= 80 and shown.code == 1


def test_programs_get_the_picture_too(
    site: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ask(monkeypatch, facts(FOUR, *ring(FOUR)), "-i", str(site), "--json") == 1
    drawn = json.loads(capsys.readouterr().out)["picture"]
    assert drawn[0] == "spark1  inner cage o--+        200 Gb/s" and len(drawn) == 11


def smaller(site: Path, folder: Path, nodes: list[str], fabric: dict[str, Any]) -> Path:
    """The inventory as somebody makes it of what was printed: fewer hosts, these lines."""
    shutil.copytree(site, folder)
    hosts = yaml.safe_load((folder / "hosts.yml").read_text())
    groups = hosts["all"]["children"]
    groups["sparks"]["hosts"] = {node: groups["sparks"]["hosts"][node] for node in nodes}
    groups["k3s_servers"]["hosts"] = {nodes[0]: None}
    (folder / "hosts.yml").write_text(yaml.safe_dump(hosts))
    path = folder / "group_vars/all/fabric.yml"
    declared = yaml.safe_load(path.read_text())
    declared["fabric"].update(fabric)
    path.write_text(yaml.safe_dump(declared))
    return folder


def test_three_in_a_ring_are_written_served_and_passed_by_preflight(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Red before: refused with three ways out."""
    nodes = FOUR[:3]
    told = facts(nodes, *ring(nodes))
    folder = smaller(site, tmp_path / "three", nodes, {})
    assert ask(monkeypatch, told, "-i", str(folder)) == 0
    assert (
        "wrote " in capsys.readouterr().out and "ring: [spark1, spark2, spark3]" in declare.path_of(folder).read_text()
    )
    assert ask(monkeypatch, told, "-i", str(folder)) == 0 and "says so already" in capsys.readouterr().out
    cluster = case.cluster(folder)
    for node, probe in told.items():
        mine = [{**port, "hca": "roce", "master": ""} for port in probe["ports"]]
        assert [*ports.judge(node, cluster, {"ports": mine})] == [], "preflight agrees"
    ends = {end["pf"] for node in case.fabric(folder)["nodes"] for end in node["endpoints"]}
    assert ends == {name for cage in NAMES.values() for name in cage}
    case.render(TWO_NODES, folder)
    with pytest.raises(Refused, match="nccl-ring-release"):
        case.render(THREE_NODES, folder)


def test_the_inventories_that_a_ring_is_parted_into_are_served_and_are_what_discover_finds_there(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Red before: nothing was proposed."""
    told = facts(FOUR, *ring(FOUR))
    whole = smaller(site, tmp_path / "whole", FOUR, {})
    assert ask(monkeypatch, told, "-i", str(whole), "--json") == 1
    ways = json.loads(capsys.readouterr().out)["inventories"]
    assert len(ways) == 2
    for number, part in enumerate(part for way in ways for part in way):
        folder = smaller(site, tmp_path / f"part{number}", part["nodes"], part["fabric"])
        here = {node: told[node] for node in part["nodes"]}
        assert ask(monkeypatch, here, "-i", str(folder)) == 0
        said = " ".join(capsys.readouterr().out.split())
        assert ("says so already" in said) == (len(here) == 2)
        cluster = case.cluster(folder)
        for node, probe in here.items():
            mine = [{**port, "hca": "roce", "master": ""} for port in probe["ports"]]
            assert [*ports.judge(node, cluster, {"ports": mine})] == [], "preflight agrees"
        case.render(TWO_NODES if len(here) == 2 else ONE_NODE, folder)  # nothing refuses it
        ends = {end["pf"] for node in case.fabric(folder)["nodes"] for end in node["endpoints"]}
        assert ends == ({name for cage in NAMES.values() for name in cage} if len(here) == 2 else set())


def test_the_shipped_example_is_never_written() -> None:
    done = run("fabric", "discover")
    assert done.returncode == 2 and "which Sparks? -i names its inventory" in done.stderr
    assert run("fabric", "discovr").returncode == 2
