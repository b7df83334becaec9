"""What is wrong with a node itself, whatever runs there: a file system that fills, a clock that is off."""

from __future__ import annotations

from collections.abc import Mapping

from sparkloom.onnode.host_metrics.disks import FREE, HELD, LITTLE
from sparkloom.onnode.now.groups import Look
from sparkloom.onnode.prometheus import samples

GIB = 1 << 30
OFF = 30.0  # seconds; a kubelet's word of itself takes milliseconds to the API


def fills(page: str) -> list[str]:
    """Of what host_metrics writes: each file system with little free, and what holds most of it."""
    free, held = (list(samples(page, (name,))) for name in (FREE[0], HELD[0]))
    found = []
    for one in (one for one in free if one.value < LITTLE):
        folder = one.label("folder")
        most = max(
            ((each.value, each.label("holder")) for each in held if each.label("folder") == folder), default=None
        )
        holder = f"; {most[1]} holds most, {most[0] / GIB:.1f} GiB" if most else ""
        found.append(f"{one.value / GIB:.1f} GiB free on the file system of {folder}{holder}")
    return found


def ill(look: Look, names: Mapping[str, str]) -> list[str]:
    """`names`: what nodes are called here, by the cluster's names for them."""
    found = [f"{names.get(node, node)}: {text}" for node, told in look.hosts.items() for text in told.get("disks", ())]
    for node, name in names.items():
        if abs(ahead := look.nodes.get(node, {}).get("clock_ahead", 0.0)) > OFF:
            off = f"{abs(ahead):,.0f} s {'ahead of' if ahead > 0 else 'behind'} the cluster's"
            found.append(f"{name}: its clock is {off}; timedatectl set-ntp true on it")
    return found
