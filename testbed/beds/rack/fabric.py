"""The rails: two jumbo bridges in a network namespace of their own, and in every node the ends of a GB10."""

from __future__ import annotations

from itertools import product
from pathlib import Path

from testbed.base import docker, names
from testbed.base.shell import ok, out, run
from testbed.base.steps import Say, Step
from testbed.beds.rack import cluster, faults

NS = names.FABRIC_NETNS
IP = ["ip", "-n", NS]
NAMESPACES = Path("/run/netns")


def _namespace() -> None:
    if NS not in out(["ip", "netns", "list"]).split():
        run(["ip", "netns", "add", NS])
    run([*IP, "link", "set", "lo", "up"])
    for rail in names.RAILS:
        bridge = f"rail-{rail}"
        if not ok([*IP, "link", "show", bridge]):
            run([*IP, "link", "add", bridge, "type", "bridge"])
        run([*IP, "link", "set", bridge, "mtu", str(names.JUMBO), "up"])


def present(container: str) -> set[str]:
    """Rail devices that the node has, in its own namespace or handed to one of its pods."""
    script = """
    ip -o link | cut -d: -f2 | cut -d@ -f1 | tr -d ' '
    for ns in /run/netns/cni-*; do
      [ ! -e "$ns" ] || nsenter --net=$ns ip -o link | sed -n 's/.*alias \\([^ \\\\]*\\).*/\\1/p'
    done"""
    return set(cluster.node_sh(container, script).split())


def _missing() -> list[tuple[int, str, int, names.Device]]:
    rows = []
    there = dict(zip(names.NODES, cluster.everywhere(lambda _, c: present(c)), strict=True))
    for (node_index, (node, container)), (index, device) in product(
        enumerate(names.NODES.items(), 1), enumerate(names.devices())
    ):
        if device.netdev not in there[node]:
            rows.append((node_index, container, index, device))
    return rows


def _done() -> bool:
    return cluster.running() and NS in out(["ip", "netns", "list"]).split() and not _missing()


def _plug(say: Say) -> None:
    _namespace()
    missing = _missing()
    say(f"{len(missing)} device ends, {len(names.RAILS)} bridges in the namespace {NS}")
    pids = {container: docker.pid_of(container) for container in names.NODES.values()}
    for node_index, container, index, device in missing:
        end = names.fabric_end(node_index, index)
        # after a node's restart its end is gone, or left without a partner
        run([*IP, "link", "delete", end], check=False)
        there = f"/proc/{pids[container]}/ns/net"
        far = ["peer", "name", device.netdev, "netns", there]
        run([*IP, "link", "add", end, "mtu", str(names.JUMBO), "type", "veth", *far])
        inside = ["nsenter", f"--net={there}", "ip", "link", "set", device.netdev]
        run([*inside, "address", names.mac(node_index, index), "mtu", "1500"])
        if device.rail:
            run([*IP, "link", "set", end, "master", f"rail-{device.rail}", "up"])
        if not device.is_vf:
            run([*inside, "up"])  # a port is up from boot; without a cable it has no carrier
    faults.reapply()


def remove() -> None:
    run(["ip", "netns", "delete", NS], check=False)


def steps() -> list[Step]:
    return [Step("fabric", "two rails of jumbo links with the interface names of a GB10", _done, _plug)]


def unmount_empty() -> None:
    """Undo what the machine's first `ip netns add` did: it mounts its folder over itself and leaves it so."""
    if ok(["mountpoint", "-q", NAMESPACES]) and not any(NAMESPACES.iterdir()):
        run(["umount", NAMESPACES])
        NAMESPACES.rmdir()
