"""Do the nodes agree on the time? Certificates, leases and etcd need it; only what is proved counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from statistics import median
from typing import Any

from sparkloom.base.finding import Finding

Probe = Mapping[str, Any]
CURE = "timedatectl set-ntp true on the node, and a time server that it reaches (/etc/systemd/timesyncd.conf)"


def bounds(probe: Probe) -> tuple[float, float]:
    """How far the node is ahead of the controller, at least and at most: it answered between two known moments."""
    now = float(probe["clock"]["now"])
    return now - float(probe["answered"]), now - float(probe["asked"])


def judge(probes: Mapping[str, Probe], tolerated: float) -> Iterator[Finding]:
    """`tolerated`: seconds that a node's clock may be from the others'."""
    for node, probe in probes.items():
        if probe["clock"]["synchronised"] is False:
            yield Finding(node, "time sync", "not synchronised", "NTP in step", CURE, "warning")
    ahead = {node: bounds(probe) for node, probe in probes.items()}
    if not ahead:
        return
    common = median(sum(pair) / 2 for pair in ahead.values()) if len(ahead) > 1 else 0.0
    for node, (least, most) in ahead.items():
        off = least - common if least > common else min(most - common, 0.0)
        if abs(off) > tolerated:
            others = "the other nodes" if len(ahead) > 1 else "this machine"
            found = f"{spelled(abs(off))} {'ahead of' if off > 0 else 'behind'} {others}"
            expected = f"at most {tolerated:g} s apart: certificates and etcd go by it"
            yield Finding(node, "clock", found, expected, f"{CURE}; preflight_clock_seconds")
    if len(ahead) > 1 and abs(common) > max(60.0, tolerated):
        where = f"{spelled(abs(common))} {'ahead of' if common > 0 else 'behind'} this machine"
        fix = "the clock of this machine"
        yield Finding("controller", "clock", f"the nodes are {where}", "the same time", fix, "warning")


def spelled(seconds: float) -> str:
    for size, unit in ((86400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.1f} s"
