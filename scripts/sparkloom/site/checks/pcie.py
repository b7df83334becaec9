"""Does each half of the ConnectX-7 have all its PCIe lanes, and did the bus count errors on them?"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from sparkloom.base.finding import Finding
from sparkloom.inputs.cluster import Cluster
from sparkloom.inputs.platform import GB10
from sparkloom.site.checks.ports import cards, twins

CHECK = "pcie"
LINK = re.compile(r"([\d.]+) GT/s.* x(\d+)")
# Corrected errors cost a repetition each; a link that is well has a few since its start, one that is not, floods.
CORRECTED = 10_000
# A device that is asked for what it has not (when the bus is searched) answers so; it says nothing about the link.
HARMLESS = "UnsupReq"
UNFATAL = "nonfatal"


def judge(node: str, cluster: Cluster, probe: Mapping[str, Any]) -> Iterator[Finding]:
    """Both halves of each cage that a rail uses, also the half that is no rail: NVIDIA's firmware gives both x4."""
    used = {rail.at(node).pci for rail in cluster.fabric.rails_of(node)}
    for halves in twins(cards(probe)):
        for half in halves if used & {half["pci"] for half in halves} else ():
            yield from _lanes(node, half)
            yield from _errors(node, half)


def _name(half: Mapping[str, Any]) -> str:
    return str(half["interface"] or half["pci"])


def _lanes(node: str, half: Mapping[str, Any]) -> Iterator[Finding]:
    now, most = LINK.match(half["pcie"]), LINK.match(half["pcie_most"])
    if not now:  # the bus does not say
        return
    wanted = (GB10.nic_pcie_gts, GB10.nic_pcie_lanes)
    speed, lanes = float(now[1]), int(now[2])
    if speed >= wanted[0] and lanes >= wanted[1]:
        return
    found = f"{_name(half)} has {half['pcie']}" + (f" (of {half['pcie_most']})" if most else "")
    fix = "switch the node off, take its power cable out for a minute, start it: the link is then trained again"
    if lanes < wanted[1]:
        # half the lanes in the second domain: a wiring that system firmware before 2026-04 chose
        # (tonyd2wild/DeepSeek-v4-Flash-Vision pull request 35, one reporter)
        fix = f"sudo fwupdmgr update (system firmware before 2026-04 gives the second half x2), or {fix}"
    carries = f"{speed * lanes * 0.85:.0f} Gb/s at most"
    expected = f"{wanted[0]:g} GT/s x{wanted[1]}, as a GB10 gives each half; this one carries {carries}"
    yield Finding(node, CHECK, found, expected, fix, "warning")


def _errors(node: str, half: Mapping[str, Any]) -> Iterator[Finding]:
    counted = half["pcie_errors"]
    serious = {
        f"{kind} {name}": times
        for kind in ("fatal", UNFATAL)
        for name, times in counted[kind].items()
        if not (kind == UNFATAL and name == HARMLESS)
    }
    corrected = sum(counted["correctable"].values())
    if not serious and corrected < CORRECTED:
        return
    parts = [f"{times} {name}" for name, times in serious.items()]
    parts += [f"{corrected} corrected"] if corrected else []
    fix = (
        "journalctl -k | grep -i aer says when; switch the node off and take its power cable out for a minute; where "
        "they come back under load, cool it or hold its clock (sudo nvidia-smi -lgc 0,2000), else ask the maker"
    )
    found = f"{_name(half)} counted {', '.join(parts)} since the start"
    expected = "none that is not corrected: a fatal one took whole nodes with it"
    yield Finding(node, CHECK, found, expected, fix, "warning")
