"""Who reaches a rail, judged by the kernel: the rendered tables, loaded by the product's own program with the real nft.

Network namespaces stand for a node, a rank's pod, a peer, a stranger on the rail's wire, a pod of the cluster's network
and the LAN. Each row is asked without the table too, when everybody gets in: a check that is green then proves nothing.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from sparkloom.inputs import addressing, inventory
from sparkloom.inputs.cluster import Cluster
from sparkloom.launch import engines, fabric, ports
from sparkloom.launch.groups import Running
from sparkloom.onnode import rails_table
from sparkloom.onnode.host import strangers
from sparkloom.render import pack
from sparkloom.render import rails_table as render
from sparkloom.render.manifests import attachments
from sparkloom.site import nodefiles
from sparkloom.site.checks import rails
from testbed.base.shell import run
from testbed.make import rootfs
from tests.namespaces import needs_namespaces

NFT = rootfs.rootfs() / "usr/sbin/nft"  # of the rack's nodes
pytestmark = [
    needs_namespaces,
    pytest.mark.skipif(
        not (shutil.which("nft") or NFT.exists()), reason="no nft here: `python -m testbed rack build` brings one"
    ),
]

CLUSTER = inventory.load()
PLAN = fabric.plan(CLUSTER)
PORT = 20000
NODE, RANK = PLAN.of("spark2", CLUSTER.fabric.check_vf)[0], PLAN.of("spark2", PLAN.serving_vf)[0]
PEER = PLAN.of("spark1", CLUSTER.fabric.check_vf)[0]
STRANGER, UNPLANNED = "192.168.100.99", "fe80::77"
# Listens for everybody, as an engine may; answers one word, and then repeats what it is told.
LISTENER = """
import socket, sys, threading
made = socket.create_server(("::", int(sys.argv[1])), family=socket.AF_INET6, dualstack_ipv6=True)
print("ready", flush=True)
def serve(plug):
    plug.sendall(b"hello")
    while told := plug.recv(100):
        plug.sendall(told)
while True:
    threading.Thread(target=serve, args=(made.accept()[0],), daemon=True).start()
"""
ASKS = """
import socket, sys
try:
    with socket.create_connection((sys.argv[1], int(sys.argv[2])), 0.7) as plug:
        sys.exit(plug.recv(5) != b"hello")
except OSError:
    sys.exit(1)
"""


class Site:
    """A rail's wire (a bridge), the cluster's network and the LAN, and who is on them."""

    def __init__(self, stack: ExitStack) -> None:
        self.stack, self.prefix = stack, f"slr{os.getpid()}"
        for who in ("wire", "node", "rank", "peer", "stranger", "pod", "lan"):
            run(["ip", "netns", "add", self.name(who)])
            stack.callback(subprocess.run, ["ip", "netns", "delete", self.name(who)], capture_output=True)
            self.ip(who, "link set lo up")
        self.ip("wire", "link add rail up type bridge")
        for who, interface, address in (
            ("node", NODE.interface, NODE.address), ("rank", "net1", RANK.address),
            ("peer", PEER.interface, PEER.address), ("stranger", "eth0", STRANGER),
        ):  # fmt: skip
            self.join("wire", who, who, interface)
            self.ip("wire", f"link set {who} master rail")
            self.ip(who, f"address add {address}/24 dev {interface}")
        self.network("lan", "10.9.0")
        self.network("pod", "10.42.0")
        self.network("rank", "10.42.1")
        self.ip("pod", "route add default via 10.42.0.1")
        self.ip("lan", "route add 192.168.100.0/24 via 10.9.0.1")
        self.ip("node", f"route add {RANK.address} via 10.42.1.2")  # who talks to the pod's interface about a rail
        self.in_("node", "sysctl", "-q", "-w", "net.ipv4.ip_forward=1", "net.ipv4.conf.all.rp_filter=0")
        self.in_("node", "nft", "table ip flannel { chain post { type nat hook postrouting priority 100; "
                 f"ip saddr 10.42.0.0/16 oifname {NODE.interface} masquerade; }}; }}")  # fmt: skip

    def name(self, who: str) -> str:
        return f"{self.prefix}-{who}"

    def ip(self, who: str, words: str) -> None:
        run(["ip", "-n", self.name(who), *words.split()])

    def join(self, one: str, end: str, other: str, far: str) -> None:
        self.ip(one, f"link add {end} up type veth peer name {far} netns {self.name(other)}")
        self.ip(other, f"link set {far} up")

    def network(self, who: str, net: str) -> None:
        """The node is the first of it, as the bridge of a cluster's network and a port to the LAN are."""
        self.join("node", f"to-{who}", who, "out")
        self.ip("node", f"address add {net}.1/24 dev to-{who}")
        self.ip(who, f"address add {net}.2/24 dev out")

    def in_(self, who: str, *words: str) -> str:
        return run(["ip", "netns", "exec", self.name(who), *words]).stdout

    def listen(self, who: str, port: int = PORT) -> None:
        words = ["ip", "netns", "exec", self.name(who), sys.executable, "-S", "-c", LISTENER, str(port)]
        started = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        self.stack.callback(started.wait)
        self.stack.callback(started.kill)
        assert started.stdout and started.stdout.readline() == "ready\n"

    def reaches(self, who: str, address: str, port: int = PORT) -> bool:
        words = ["ip", "netns", "exec", self.name(who), sys.executable, "-S", "-c", ASKS, address, str(port)]
        return subprocess.run(words, check=False).returncode == 0


@pytest.fixture(autouse=True)
def nft(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The node's own program with its own libraries, where this machine has none."""
    if shutil.which("nft"):
        return
    tree = rootfs.rootfs()
    (loader,) = tree.glob("usr/lib/*-linux-gnu/ld-linux-*.so.*")
    mine = tmp_path / "bin" / "nft"
    mine.parent.mkdir()
    mine.write_text(f'#!/bin/sh\nexec {loader} --library-path {loader.parent} {NFT} "$@"\n')
    mine.chmod(0o755)
    monkeypatch.setenv("PATH", f"{mine.parent}:{os.environ['PATH']}")


@pytest.fixture
def site() -> Iterator[Site]:
    with ExitStack() as stack:
        yield Site(stack)


@pytest.fixture
def tables(tmp_path: Path) -> dict[str, Path]:
    files = nodefiles.every(CLUSTER, PLAN)["spark2"]["private"]
    for name, text in files.items():
        (tmp_path / f"{name}.nft").write_text(text)
    return {name: tmp_path / f"{name}.nft" for name in files}


def program(site: Site, folder: Path, *words: str) -> str:
    """As the unit and the role start it."""
    none = ("--namespaces", str(folder / "none"))
    return site.in_("node", sys.executable, str(pack.program("rails_table").keep(folder)), *none, *words).strip()


def asked(site: Site, at: str, address: str, peer_s: str) -> dict[str, bool]:
    rows = {who: site.reaches(who, address) for who in ("peer", "stranger", "pod", "lan")}
    return rows | {
        "itself": site.reaches(at, address),
        "stranger over IPv6": site.reaches("stranger", f"{UNPLANNED}%eth0"),
        "pod by the node to a peer": site.reaches("pod", peer_s),
    }


def test_a_node_s_rail_hears_planned_peers_and_nobody_else(site: Site, tables: dict[str, Path], tmp_path: Path) -> None:
    site.listen("node")
    site.listen("peer")
    site.ip("node", f"address add {UNPLANNED}/64 dev {NODE.interface} nodad")
    site.ip("stranger", "address add fe80::99/64 dev eth0 nodad")
    one = ("node", NODE.address, PEER.address)
    assert [who for who, got_in in asked(site, *one).items() if not got_in] == []
    assert program(site, tmp_path, "--file", str(tables["host"]), "--check").startswith("changed: ")
    assert program(site, tmp_path, "--file", str(tables["host"])).startswith("changed: ")
    private = asked(site, *one)
    assert {who for who, got_in in private.items() if got_in} == {"peer", "itself"}
    assert site.reaches("lan", "10.9.0.1") and site.reaches("pod", "10.42.0.1")  # what is not a rail is not ours
    assert program(site, tmp_path, "--undo").startswith("changed: ")
    assert [who for who, got_in in asked(site, *one).items() if not got_in] == []
    assert "masquerade" in site.in_("node", "nft", "list", "ruleset")  # nobody else's table went with ours


def test_a_rank_s_pod_gets_its_table_with_its_rail(site: Site, tables: dict[str, Path]) -> None:
    """The route of the node stands for whoever sends packets for the rail's address to the pod's own interface."""
    site.listen("rank")
    site.ip("rank", "route add 10.42.0.0/24 via 10.42.1.1")
    site.ip("rank", "route add 10.9.0.0/24 via 10.42.1.1")
    ways = ("peer", "stranger", "pod", "lan")
    assert {who: site.reaches(who, RANK.address) for who in ways} == dict.fromkeys(ways, True)
    told = {"CNI_COMMAND": "ADD", "CNI_NETNS": f"/run/netns/{site.name('rank')}", "CNI_IFNAME": "net1"}
    before = {"cniVersion": "0.4.0", "interfaces": [{"name": "net1"}], "ips": []}
    config = {"cniVersion": "0.4.0", "name": "rail-a-vf0", "type": "sparkloom-rails", "prevResult": before}
    assert rails_table.attach(told, config, tables["pod"]) == before
    assert {who for who in ways if site.reaches(who, RANK.address)} == {"peer"}
    assert site.reaches("pod", "10.42.1.2")  # the Service's way to the engine: NetworkPolicy's matter, not ours
    assert rails_table.attach({**told, "CNI_COMMAND": "CHECK"}, config, tables["pod"]) is None
    assert rails_table.attach({**told, "CNI_COMMAND": "DEL"}, config, tables["pod"]) is None
    site.in_("rank", "nft", "flush", "ruleset")
    with pytest.raises(rails_table.TableError, match="delete the pod"):
        rails_table.attach({**told, "CNI_COMMAND": "CHECK"}, config, tables["pod"])


def test_a_rail_is_fit_for_a_pod_that_may_change_nothing(site: Site, tables: dict[str, Path]) -> None:
    """Without the right to do it a rank answered for the other half's address too, and named a small MTU for ever."""
    site.ip("rank", "link set net1 mtu 1500")
    told = {"CNI_COMMAND": "ADD", "CNI_NETNS": f"/run/netns/{site.name('rank')}", "CNI_IFNAME": "net1"}
    rails_table.attach(told, {"cniVersion": "0.4.0", "mtu": 2000}, tables["pod"])
    conf = "/proc/sys/net/ipv4/conf/net1"
    assert site.in_("rank", "cat", f"{conf}/arp_ignore", f"{conf}/arp_announce").split() == ["1", "2"]
    assert "mtu 2000" in site.in_("rank", "ip", "link", "show", "net1")


def test_the_name_that_a_pod_gives_its_rail_is_no_word_of_a_shell(
    site: Site, tables: dict[str, Path], tmp_path: Path
) -> None:
    told = {"CNI_COMMAND": "ADD", "CNI_NETNS": f"/run/netns/{site.name('rank')}"}
    for name in ("a;id>$HOME/o", "$(id>$HOME/o)", "`id>$HOME/o`"):
        rails_table.attach({**told, "CNI_IFNAME": name}, {"cniVersion": "0.4.0", "mtu": 2000}, tables["pod"])
    assert not (Path.home() / "o").exists()


@pytest.mark.parametrize("port", [engines.get(name).port for name in engines.names()] + [ports.PROBES])
def test_a_peer_does_not_reach_what_the_cluster_s_network_is_meant_for(
    site: Site, tables: dict[str, Path], port: int
) -> None:
    """An engine's API listens on every interface of its pod; over a rail it answered /health and /metrics to a peer."""
    site.listen("rank", port)
    site.ip("rank", "route add 10.42.0.0/24 via 10.42.1.1")
    assert site.reaches("peer", RANK.address, port)
    told = {"CNI_COMMAND": "ADD", "CNI_NETNS": f"/run/netns/{site.name('rank')}", "CNI_IFNAME": "net1"}
    rails_table.attach(told, {"cniVersion": "0.4.0"}, tables["pod"])
    assert not site.reaches("peer", RANK.address, port)
    assert site.reaches("pod", "10.42.1.2", port)


def test_a_pod_that_lost_its_table_gets_it_back_and_another_s_net1_is_not_ours(
    site: Site, tables: dict[str, Path], tmp_path: Path
) -> None:
    """Root in a pod flushes it; a pod from before the table never had it."""
    site.join("pod", "peer-of-net1", "pod", "net1")
    site.ip("pod", "address add 10.77.0.1/24 dev net1")
    (tmp_path / "namespaces").mkdir()
    for who in ("rank", "pod", "lan"):
        (tmp_path / "namespaces" / who).symlink_to(f"/run/netns/{site.name(who)}")
    words = ("--file", str(tables["host"]), "--pods", str(tables["pod"]), "--namespaces", str(tmp_path / "namespaces"))
    program(site, tmp_path, *words)
    site.in_("rank", "nft", "flush", "ruleset")
    assert "namespaces/rank is not as " in program(site, tmp_path, *words, "--check")
    said = program(site, tmp_path, *words)
    assert said.count("changed: ") == 1 and "namespaces/rank is as " in said
    assert program(site, tmp_path, *words) == "as planned"
    site.listen("rank")
    assert site.reaches("peer", RANK.address) and not site.reaches("stranger", RANK.address)
    assert "sparkloom" not in site.in_("pod", "nft", "list", "ruleset")
    tables["pod"].write_text(render.pod(of_fabric(private=False), PLAN, "spark2"))
    assert "namespaces/rank is as " in program(site, tmp_path, *words)
    assert site.reaches("stranger", RANK.address) and program(site, tmp_path, *words) == "as planned"


@contextmanager
def connected(site: Site, speaker: str, address: str) -> Iterator[None]:
    """A connection that is open before the block, and over which something comes back after it."""
    talk = (
        "import socket, sys\n"
        f"plug = socket.create_connection(({address!r}, {PORT}), 2)\n"
        "plug.settimeout(2)\n"
        "assert plug.recv(5) == b'hello'\n"
        "print('open', flush=True)\n"
        "sys.stdin.readline()\n"
        "plug.sendall(b'still')\n"
        "print(plug.recv(5).decode(), flush=True)\n"
    )
    words = ["ip", "netns", "exec", site.name(speaker), sys.executable, "-S", "-c", talk]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as talker:
        assert talker.stdin and talker.stdout and talker.stdout.readline() == "open\n"
        yield
        talker.stdin.write("\n")
        talker.stdin.flush()
        assert talker.stdout.readline() == "still\n"


def test_another_plan_ends_no_connection_of_a_planned_peer(site: Site, tables: dict[str, Path], tmp_path: Path) -> None:
    site.listen("node")
    program(site, tmp_path, "--file", str(tables["host"]))
    with connected(site, "peer", NODE.address):
        tables["host"].write_text(tables["host"].read_text().replace(PLAN.of("spark4", 0)[0].address, STRANGER))
        assert program(site, tmp_path, "--file", str(tables["host"])).startswith("changed: ")
        assert program(site, tmp_path, "--file", str(tables["host"])) == "as planned"


def test_a_rank_hears_its_own_group_and_the_hosts_and_a_change_of_the_groups_ends_no_connection(
    site: Site, tables: dict[str, Path], tmp_path: Path
) -> None:
    """Red before: of one rail every planned address heard every other, whichever group it was of."""
    several = of_fabric(vfs_per_rail=4).model_copy(update={"several": True})
    plan = fabric.plan(several)
    (tmp_path / "namespaces").mkdir()
    (tmp_path / "namespaces" / "rank").symlink_to(f"/run/netns/{site.name('rank')}")
    words = ("--file", str(tables["host"]), "--pods", str(tables["pod"]), "--namespaces", str(tmp_path / "namespaces"))
    site.listen("rank")

    def known(*groups: Running) -> None:
        tables["pod"].write_text(render.pod(several, plan, "spark2", groups))
        program(site, tmp_path, *words)
        assert program(site, tmp_path, *words) == "as planned"

    def speaks(node: str, vf: int) -> bool:
        site.ip("stranger", "address flush dev eth0")
        site.ip("stranger", f"address add {plan.of(node, vf)[0].address}/24 dev eth0")
        return site.reaches("stranger", RANK.address)

    known()
    assert [speaks("spark1", vf) for vf in (0, 2, 3)] == [True, False, False]
    assert speaks("spark3", 0) and speaks("spark4", 1)
    both = Running("a", "a", ("spark2", "spark3"), 0), Running("b", "b", ("spark1", "spark4"), 0)
    assert speaks("spark3", 0)  # and goes on to
    with connected(site, "stranger", RANK.address):
        known(*both)
    assert [speaks("spark1", vf) for vf in (0, 2, 3)] == [False, False, False]
    assert speaks("spark3", 0) and not speaks("spark4", 0) and speaks("spark4", 1)


def test_a_table_that_somebody_flushed_or_changed_is_seen_and_put_back(
    site: Site, tables: dict[str, Path], tmp_path: Path
) -> None:
    host = ("--file", str(tables["host"]))
    table = ("table", "inet", rails_table.TABLE)
    for change in (
        ("flush", "ruleset"), ("flush", *table), ("add", "rule", *table[1:], "arriving", "accept"),
        ("add", "element", *table[1:], "peers", f'{{ "{NODE.interface}" . {STRANGER} }}'),
    ):  # fmt: skip
        program(site, tmp_path, *host)
        site.in_("node", "nft", *change)
        assert program(site, tmp_path, *host, "--check").startswith("changed: "), change
        assert program(site, tmp_path, *host).startswith("changed: ")
        assert program(site, tmp_path, *host) == "as planned"


def test_as_a_cni_program_it_says_what_it_speaks_and_why_not(site: Site, tmp_path: Path) -> None:
    def told(command: str, config: str = '{"cniVersion": "0.4.0"}') -> tuple[int, dict[str, object]]:
        file = pack.program("rails_table").keep(tmp_path)
        env = {"PATH": os.environ["PATH"], "CNI_COMMAND": command, "CNI_NETNS": "/run/netns/of-nobody"}
        done = subprocess.run([sys.executable, str(file)], input=config, env=env, capture_output=True, text=True)
        return done.returncode, json.loads(done.stdout or "{}")

    assert "0.4.0" in str(told("VERSION")[1]["supportedVersions"])
    status, answer = told("ADD")
    assert status == 1 and answer["code"] == 100 and "of-nobody" in str(answer["msg"])
    assert told("DEL") == (0, {})


def test_without_nft_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(rails_table, "PROGRAMS", "")
    monkeypatch.setenv("PATH", str(tmp_path))
    file = tmp_path / "rails.nft"
    file.write_text(render.host(CLUSTER, PLAN, "spark2"))
    for dry in (True, False):
        with pytest.raises(rails_table.TableError, match="install the package nftables"):
            rails_table.kept(file, dry=dry)
    file.write_text(render.host(of_fabric(private=False), PLAN, "spark2"))
    assert rails_table.kept(file, dry=False) == []


def of_fabric(**settings: Any) -> Cluster:
    return CLUSTER.model_copy(update={"fabric": CLUSTER.fabric.model_copy(update=settings)})


def test_a_guest_is_heard_and_an_open_site_hears_everybody(site: Site, tmp_path: Path) -> None:
    site.listen("node")
    file = tmp_path / "rails.nft"
    for settings, heard in (
        ({}, {"peer"}), ({"guests": [STRANGER]}, {"peer", "stranger"}),
        ({"private": False}, {"peer", "stranger", "pod", "lan"}),
    ):  # fmt: skip
        file.write_text(render.host(of_fabric(**settings), PLAN, "spark2"))
        assert program(site, tmp_path, "--file", str(file)).startswith("changed: ")
        assert program(site, tmp_path, "--file", str(file)) == "as planned"
        assert {who for who in ("peer", "stranger", "pod", "lan") if site.reaches(who, NODE.address)} == heard


def test_an_open_site_s_pods_ask_for_no_table() -> None:
    for private, programs in ((True, ["host-device", "sparkloom-rails"]), (False, ["host-device"])):
        (first, *_) = attachments.definitions(of_fabric(private=private))
        assert [plugin["type"] for plugin in json.loads(first["spec"]["config"])["plugins"]] == programs


def test_a_guest_outside_the_rails_is_a_mistake_that_is_named() -> None:
    (fault,) = addressing.faults(of_fabric(guests=["192.168.100.50", "192.168.1.50"]))
    assert fault.loc == ("fabric", "guests", 1) and "192.168.1.50 is in no rail's subnet" in str(fault)


@pytest.fixture
def knock(site: Site, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[], set[tuple[str, str]]]:
    """As the probe of spark2 asks: the other Spark's rail and its own, by every way that this node has."""
    monkeypatch.setattr(strangers, "NAMESPACES", tmp_path / "namespaces")
    (tmp_path / "namespaces").mkdir()
    for who in ("rank", "pod"):
        (tmp_path / "namespaces" / who).symlink_to(f"/run/netns/{site.name(who)}")
    real = strangers.run
    inside = ("ip", "netns", "exec", site.name("node"))
    monkeypatch.setattr(strangers, "run", lambda *words, timeout=10: real(*inside, *words, timeout=timeout))
    site.ip("peer", f"route add 10.9.0.0/24 via {NODE.address}")
    asked = rails.unanswered(CLUSTER, PLAN, "spark2") | {"management": "to-lan"}

    def answers() -> set[tuple[str, str]]:
        told = strangers.answered(**asked)
        assert told["by"] == ["lan", "peer", "pod"]
        return {(door["by"], door["address"]) for door in told["doors"]}

    return answers


def test_more_doors_than_one_process_may_have_open_are_asked_in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Red before: `select` refuses more than 1,024, which a site with many functions has."""
    turns = []

    def run(*words: str, timeout: int = 10) -> str:
        turns.append(len(json.loads(words[-1])[2]))
        return json.dumps({"0": "answers"})

    monkeypatch.setattr(strangers, "run", run)
    doors = [{"by": "peer", "node": f"spark{n}", "address": "192.168.100.1", "port": n} for n in range(1, 1202)]
    heard = strangers._heard(doors, "peer", [], "")
    assert turns == [500, 500, 201] and [door["port"] for door in heard] == [1, 501, 1001]


def test_the_probe_finds_every_way_in_and_none_once_the_tables_stand(
    site: Site, tables: dict[str, Path], tmp_path: Path, knock: Callable[[], set[tuple[str, str]]]
) -> None:
    """Nothing listens on either node: that the kernel refuses shows that it was let in."""
    assert knock() >= {("pod", NODE.address), ("pod", PEER.address), ("lan", PEER.address)}
    site.in_("peer", "nft", nodefiles.every(CLUSTER, PLAN)["spark1"]["private"]["host"])
    assert {by for by, address in knock() if address == PEER.address} == {"pod"}  # it comes with this node's address
    program(site, tmp_path, "--file", str(tables["host"]))
    assert {by for by, _ in knock()} <= {"peer"}
    assert program(site, tmp_path, "--undo").startswith("changed: ")
    # With the cable out the packets take the default route, where the LAN's router says no for everybody.
    site.ip("node", f"link set {NODE.interface} down")
    site.ip("node", "route add default via 10.9.0.2")
    router = "type nat hook prerouting priority -100; ip daddr 192.168.100.0/24 redirect;"
    site.in_("lan", "nft", f"table ip router {{ chain router {{ {router} }}; }}")
    assert {address for _, address in knock()} <= {NODE.address}
