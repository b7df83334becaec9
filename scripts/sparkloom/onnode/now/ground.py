"""What is wrong with a node itself, whatever runs there: a file system that fills, a clock that is off."""

from __future__ import annotations

from collections.abc import Mapping

from sparkloom.onnode.now.groups import Look

OFF = 30.0  # seconds; a kubelet's word of itself takes milliseconds to the API


def ill(look: Look, names: Mapping[str, str]) -> list[str]:
    """`names`: what nodes are called here, by the cluster's names for them."""
    found = [f"{names.get(node, node)}: {text}" for node, told in look.hosts.items() for text in told.get("disks", ())]
    for node, name in names.items():
        if abs(ahead := look.nodes.get(node, {}).get("clock_ahead", 0.0)) > OFF:
            off = f"{abs(ahead):,.0f} s {'ahead of' if ahead > 0 else 'behind'} the cluster's"
            found.append(f"{name}: its clock is {off}; timedatectl set-ntp true on it")
    return found
