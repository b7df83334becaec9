"""The rails: two jumbo bridges in a network namespace of their own, and in every node the ends of a GB10."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, product
from pathlib import Path

from testbed.base import docker, names
from testbed.base.shell import RackError, ok, out, run
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


# One JSON object a line: the node's own links, then those of its pods, where a rail's name is the alias.
LINKS = """
said() { printf '{"pod": %s, "links": %s}\\n' $1 "$(ip -json link)"; }
said false
for ns in /run/netns/cni-*; do
  [ ! -e "$ns" ] || nsenter --net=$ns bash -c "$(declare -f said); said true"
done"""
# What a program on the node gets to see of a device: the kernel's link, and the card that facts.py lays beside it.
SEEN = """
for name in @@; do
  ! ip link show $name >/dev/null 2>&1 || [ -e /sys/class/net/$name/device/vendor ] || echo $name
done"""
# Units that failed for want of cards; no pod is given a card before they have done their work.
FAILED = "systemctl list-units --state=failed --no-legend --plain | cut -d' ' -f1"
HOLD = f'[ -z "$({FAILED})" ] || systemctl stop kubelet'
GO_ON = f"for unit in $({FAILED}); do systemctl restart $unit || true; done; systemctl start kubelet"
FACTS_SECONDS = 8  # the facts are looked at once a second


def plugged(text: str) -> dict[str, tuple[int, int]]:
    """{device: its index, its partner's index} of the answer to LINKS, on the node or handed to one of its pods."""
    found = {}
    for said in map(json.loads, text.splitlines()):
        for link in said["links"]:
            name = link.get("ifalias", "") if said["pod"] else link["ifname"]
            found[name] = (link["ifindex"], link.get("link_index", 0))
    return found


def held_by(node_index: int, there: dict[str, tuple[int, int]], ends: dict[str, tuple[int, int]]) -> set[str]:
    """The node's devices whose partner is their own end on the rails: a name alone may hang on nothing."""
    held = set()
    for index, device in enumerate(names.devices()):
        mine, end = there.get(device.netdev), ends.get(names.fabric_end(node_index, index))
        if mine and end and mine == (end[1], end[0]):
            held.add(device.netdev)
    return held


def _ends() -> dict[str, tuple[int, int]]:
    if NS not in out(["ip", "netns", "list"]).split():
        return {}
    links = json.loads(out([*IP, "-json", "link"]))
    return {link["ifname"]: (link["ifindex"], link.get("link_index", 0)) for link in links}


def present(container: str) -> set[str]:
    """Rail devices that the node has, in its own namespace or handed to one of its pods, and that hang on the rails."""
    node_index, _ = faults.node(container)
    return held_by(node_index, plugged(cluster.node_sh(container, LINKS)), _ends())


def _missing() -> list[tuple[int, str, int, names.Device]]:
    rows = []
    there = dict(zip(names.NODES, cluster.everywhere(lambda _, c: present(c)), strict=True))
    for (node_index, (node, container)), (index, device) in product(
        enumerate(names.NODES.items(), 1), enumerate(names.devices())
    ):
        if device.netdev not in there[node]:
            rows.append((node_index, container, index, device))
    return rows


def _unseen() -> list[str]:
    """Devices on a node that no program there can look at in /sys, each as `node device`."""
    script = SEEN.replace("@@", " ".join(device.netdev for device in names.devices()))
    rows = cluster.everywhere(lambda node, c: [f"{node} {name}" for name in cluster.node_sh(c, script).split()])
    return list(chain.from_iterable(rows))


def _require_seen() -> None:
    """`up` has healed nothing while a rail is a name without a device."""
    deadline = time.monotonic() + FACTS_SECONDS
    while unseen := _unseen():
        if time.monotonic() > deadline:
            node = unseen[0].split()[0]
            raise RackError(
                f"found no /sys/class/net/DEVICE/device on {', '.join(unseen)}, expected the card behind each; "
                f"`python -m testbed rack node {node} restart` lays them anew (there: journalctl -u sparkloom-testbed)"
            )
        time.sleep(0.5)


def _done() -> bool:
    return cluster.running() and NS in out(["ip", "netns", "list"]).split() and not _missing() and not _unseen()


def _plug(say: Say) -> None:
    _namespace()
    missing = _missing()
    say(f"{len(missing)} device ends, {len(names.RAILS)} bridges in the namespace {NS}")
    late = sorted({container for _, container, *_ in missing})
    _on(late, HOLD)
    pids = {container: docker.pid_of(container) for container in names.NODES.values()}
    for node_index, container, index, device in missing:
        end = names.fabric_end(node_index, index)
        # after a node's restart its end is gone, or left without a partner
        run([*IP, "link", "delete", end], check=False)
        there = f"/proc/{pids[container]}/ns/net"
        inside = ["nsenter", f"--net={there}", "ip", "link"]
        run([*inside, "delete", device.netdev], check=False)  # a name that hangs on nothing
        far = ["peer", "name", device.netdev, "netns", there]
        run([*IP, "link", "add", end, "mtu", str(names.JUMBO), "type", "veth", *far])
        run([*inside, "set", device.netdev, "address", names.mac(node_index, index), "mtu", "1500"])
        if device.rail:
            run([*IP, "link", "set", end, "master", f"rail-{device.rail}", "up"])
        if not device.is_vf:
            run([*inside, "set", device.netdev, "up"])  # a port is up from boot; without a cable it has no carrier
    faults.reapply()
    _require_seen()
    _on(late, GO_ON)


def _on(containers: list[str], script: str) -> None:
    """A machine has its cards when it starts; a container gets them afterwards, and is then brought to that state."""
    with ThreadPoolExecutor(len(names.NODES)) as pool:
        list(pool.map(lambda container: cluster.node_sh(container, script), containers))


def remove() -> None:
    run(["ip", "netns", "delete", NS], check=False)


def steps() -> list[Step]:
    return [Step("fabric", "two rails of jumbo links with the interface names of a GB10", _done, _plug)]


def unmount_empty() -> None:
    """Undo what the machine's first `ip netns add` did: it mounts its folder over itself and leaves it so."""
    if ok(["mountpoint", "-q", NAMESPACES]) and not any(NAMESPACES.iterdir()):
        run(["umount", NAMESPACES])
        NAMESPACES.rmdir()
