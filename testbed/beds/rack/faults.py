"""Breaking one node's fabric on purpose, and mending it. Kept on the node, so that a restart does not heal a fault."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from testbed.base import docker, names
from testbed.base.shell import RackError, run
from testbed.beds.rack import cluster, setups

FILE = f"{names.NODE_STATE}/faults.json"
Held = dict[str, dict[str, dict[str, int]]]  # fault -> rail -> what to put back


@dataclass(frozen=True)
class Fault:
    """`on` and `off` act on the links; one without them only shows in the facts of the node's unit."""

    meaning: str
    on: Callable[[int, str, str], dict[str, int]] | None = None
    off: Callable[[int, str, str, dict[str, int]], None] | None = None


def _links(node_index: int, rail: str, *words: str) -> None:
    for end in names.rail_ends(node_index, rail):
        run(["ip", "-n", names.FABRIC_NETNS, "link", "set", end, *words])


def _unplug(node_index: int, container: str, rail: str) -> dict[str, int]:
    _links(node_index, rail, "down")
    return {}


def _replug(node_index: int, container: str, rail: str, saved: dict[str, int]) -> None:
    _links(node_index, rail, "up")


def _device_mtu(container: str, device: str, mtu: int | None = None) -> int:
    """MTU of a rail device wherever it is (node or pod), set first when asked; 0 when it is nowhere."""
    change = f"$in ip link set $name mtu {mtu}" if mtu else "true"
    script = f"""
    look() {{ in=$1 name=$2; {change}; $in ip -o link show $name | sed 's/.* mtu \\([0-9]*\\) .*/\\1/'; exit 0; }}
    ip link show {device} >/dev/null 2>&1 && look '' {device}
    for ns in /run/netns/cni-*; do
      name=$(nsenter --net=$ns ip -o link 2>/dev/null | grep 'alias {device}' | cut -d: -f2 | cut -d@ -f1 | tr -d ' ')
      [ -z "$name" ] || look "nsenter --net=$ns" $name
    done
    echo 0"""
    return int(cluster.node_sh(container, script) or 0)


def _shrink(node_index: int, container: str, rail: str) -> dict[str, int]:
    devices = [d.netdev for d in names.devices() if d.rail == rail]
    saved = {device: _device_mtu(container, device) for device in devices}
    _links(node_index, rail, "mtu", "1500")
    for device in devices:
        _device_mtu(container, device, 1500)
    return saved


def _widen(node_index: int, container: str, rail: str, saved: dict[str, int]) -> None:
    _links(node_index, rail, "mtu", str(names.JUMBO))
    for device, mtu in saved.items():
        if mtu:
            _device_mtu(container, device, mtu)


# A line in this folder runs at the start of every Python on the node: what a module then sees is made up.
STARTUP = "/usr/lib/python3/dist-packages/sparkloom-testbed-{}.pth"
LINES = {
    "clock-off": "import time; time.time = lambda real=time.time: real() + 3600",
    "old-kernel": "import os; os.uname = lambda real=os.uname, kind=os.uname_result: "
    "kind((*real()[:2], '7.0.0-1019-nvidia', *real()[3:]))",
}
RELEASE = "/etc/dgx-release"


def _made_up(fault: str) -> Fault:
    path = STARTUP.format(fault)

    def on(node_index: int, container: str, rail: str) -> dict[str, int]:
        cluster.node_sh(container, f"cat > {path} <<'EOF'\n{LINES[fault]}\nEOF")
        return {}

    def off(node_index: int, container: str, rail: str, saved: dict[str, int]) -> None:
        cluster.node_sh(container, f"rm -f {path}")

    return Fault(MEANINGS[fault], on, off)


def _set_up(name: str) -> Fault:
    """Somebody else was here first."""

    def on(node_index: int, container: str, rail: str) -> dict[str, int]:
        cluster.node_sh(container, setups.come(name, node_index))
        return {}

    def off(node_index: int, container: str, rail: str, saved: dict[str, int]) -> None:
        cluster.node_sh(container, setups.gone(node_index))

    return Fault(setups.MEANINGS[name], on, off)


def _unnamed(node_index: int, container: str, rail: str) -> dict[str, int]:
    cluster.node_sh(container, f"[ ! -e {RELEASE} ] || mv {RELEASE} {RELEASE}.away")
    return {}


def _named(node_index: int, container: str, rail: str, saved: dict[str, int]) -> None:
    cluster.node_sh(container, f"[ ! -e {RELEASE}.away ] || mv {RELEASE}.away {RELEASE}")


MEANINGS = {
    "clock-off": "the clock is an hour ahead, as far as Python on the node can tell (the rail does not matter)",
    "old-kernel": "the kernel calls itself 7.0.0-1019-nvidia, likewise (the rail does not matter)",
}
FAULTS = {
    "link-down": Fault("the cable of the rail is out: no carrier on the port and its VFs", _unplug, _replug),
    "slow": Fault("the rail's link reports 13 Gb/s instead of 200"),
    "mtu1500": Fault("the rail lost its jumbo frames, on the node and beyond", _shrink, _widen),
    "no-gid": Fault("the RDMA devices of the rail show no GID for an IPv4 address"),
    "no-rdma-device": Fault("the rail's RDMA devices are gone (/sys/class/infiniband, rdma, /dev/infiniband)"),
    "clock-off": _made_up("clock-off"),
    "old-kernel": _made_up("old-kernel"),
    "no-release-file": Fault(f"{RELEASE} is gone: no GB10 by its name (the rail does not matter)", _unnamed, _named),
    **{name: _set_up(name) for name in setups.SETUPS},
    "narrow": Fault("the rail's port has two of its four PCIe lanes"),
    "slow-gpu": Fault("the GPU is busy at 611 MHz and 14 W, the hidden slow state (the rail does not matter)"),
    "hot-gpu": Fault("the GPU is busy at 87 degrees, which hold its clock back (the rail does not matter)"),
    "crumbs": Fault("the free memory of the node lies in blocks of 64 KiB (the rail does not matter)"),
    "memory-kept": Fault("60 GiB of the node's memory stay used after an engine has ended (the rail does not matter)"),
}


def node(name: str) -> tuple[int, str]:
    """(index from 1, container) of an inventory name or a container name."""
    for index, (inventory, container) in enumerate(names.NODES.items(), 1):
        if name in (inventory, container):
            return index, container
    raise RackError(f"found node {name!r}, expected one of {', '.join(names.NODES)}")


def held(container: str) -> Held:
    text = cluster.node_sh(container, f"cat {FILE} 2>/dev/null || echo '{{}}'")
    state: Held = json.loads(text)
    return state


def _keep(container: str, state: Held) -> None:
    cluster.node_sh(container, f"cat > {FILE}.new <<'EOF'\n{json.dumps(state)}\nEOF\nmv {FILE}.new {FILE}")


def break_(name: str, fault: str, rails: Sequence[str]) -> Held:
    index, container = node(name)
    _running(name, container)
    state, kind = held(container), _known(fault)
    for rail in rails:
        if rail not in state.setdefault(fault, {}):
            state[fault][rail] = kind.on(index, container, rail) if kind.on else {}
    _keep(container, state)
    return state


def mend(name: str, fault: str | None, rails: Sequence[str]) -> Held:
    index, container = node(name)
    _running(name, container)
    state = held(container)
    for which in [fault] if fault else list(state):
        kind = _known(which)
        for rail in rails:
            saved = state.get(which, {}).pop(rail, None)
            if saved is not None and kind.off:
                kind.off(index, container, rail, saved)
        if not state.get(which):
            state.pop(which, None)
    _keep(container, state)
    return state


def reapply() -> None:
    """Links made anew (a node's restart) get the faults that are held for them."""
    for index, (_, container) in enumerate(names.NODES.items(), 1):
        for fault, rails in held(container).items():
            kind = _known(fault)
            for rail in rails:
                if kind.on:
                    kind.on(index, container, rail)


def _known(fault: str) -> Fault:
    if fault not in FAULTS:
        raise RackError(f"found fault {fault!r}, expected one of {', '.join(FAULTS)}")
    return FAULTS[fault]


def _running(name: str, container: str) -> None:
    state = docker.containers().get(container, "absent")
    if state != "running":
        raise RackError(f"node {name} ({container}) is {state}, expected running: `python -m testbed rack up` first")
