"""What a Spark runs below everything: kernel, driver, the card's firmware. From lists of known ones, and compared.

Can this kernel register memory for RDMA: by its release, and by the sign of the known fault. Does the driver answer, is
it one of which nothing bad is known, and are both drivers and firmware the same on all nodes?
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal

from sparkloom.base import document
from sparkloom.base.finding import Finding
from sparkloom.inputs.cluster import Cluster

Probe = Mapping[str, Any]
CURE = "boot a 6.17 kernel (6.17.0-1031-nvidia), or add kho=off to GRUB_CMDLINE_LINUX, update-grub, reboot"
ALLOW = "preflight_kernels_allowed names releases that your site knows to work"
# What the reserve amounts to in reports is 9 GiB; a registered CMA area never has more free than in all.
STRAY_GIB = 0.5


@cache
def known(what: Literal["kernels", "drivers"]) -> tuple[Mapping[str, Any], ...]:
    return tuple(document.own(Path(__file__).with_name(f"{what}.yml").read_text()))


def find(what: Literal["kernels", "drivers"], version: str) -> Mapping[str, Any] | None:
    return next((entry for entry in known(what) if re.search(entry["match"], version)), None)


def kernel(node: str, probe: Probe, allowed: Collection[str]) -> Iterator[Finding]:
    release, words = probe["system"]["kernel"], probe["system"]["cmdline"].split()
    if release in allowed:
        return
    entry = find("kernels", release)
    cured = entry is not None and entry.get("unless") in words
    if entry is not None and not entry["works"] and not cured:
        message = f"{release}: {entry['why']}"
        yield Finding(node, "kernel", message, "one that registers RDMA memory", f"{CURE}; {ALLOW}")
        return
    memory = probe["memory"]["gib"]
    stray = memory["CmaFree"] - memory["CmaTotal"]
    if stray > STRAY_GIB and not cured:
        found = f"{release} with {stray:.1f} GiB free of memory that belongs to no CMA area (kexec handover's reserve)"
        expected = "CmaFree no larger than CmaTotal in /proc/meminfo; with it ibv_reg_mr fails with ENOMEM"
        yield Finding(node, "kernel", found, expected, f"{CURE}; {ALLOW}")
    elif entry is None:
        found, listed = f"{release}, of which nothing is known", "one of scripts/sparkloom/site/checks/kernels.yml"
        yield Finding(node, "kernel", found, listed, f"watch the first start; {ALLOW}", "warning")


def driver(node: str, probe: Probe, expected: str) -> Iterator[Finding]:
    told = probe["driver"]
    version = told["version"]
    trouble = find("drivers", version)
    if not version:
        loaded = f"; the kernel has {told['loaded']} loaded" if told["loaded"] else ""
        found = f"no answer from nvidia-smi ({told['why'] or 'empty'}){loaded}"
        fix = "reboot when the driver was just updated; else install the driver of DGX OS"
        yield Finding(node, "driver", found, f"NVIDIA's driver {expected}".rstrip(), fix)
    elif f"{version}.".startswith(f"{expected}."):
        return
    elif trouble:
        wanted, fix = f"{expected or 'another'}: preflight_driver names what this site trusts", trouble["cure"]
        found = f"{version}: {trouble['why']}"
        yield Finding(node, "driver", found, wanted, fix, "error" if trouble["refuse"] else "warning")
    elif expected:
        wanted = f"{expected}, which the measured figures were made with"
        fix = "nothing, when it serves well; preflight_driver names the version that you expect"
        yield Finding(node, "driver", version, wanted, fix, "warning")


def drivers_differ(probes: Mapping[str, Probe], expected: str) -> Iterator[Finding]:
    """One engine on several nodes wants one driver; who has another than the site expects is named already."""
    for node, version, common in _odd({node: str(probe["driver"]["version"]) for node, probe in probes.items()}):
        if f"{version}.".startswith(f"{expected}."):
            fix = f"sudo apt-get update and full-upgrade there, reboot; or {version} on the others"
            yield Finding(node, "driver", version, f"{common} as on the others", fix, "warning")


def firmware_differs(cluster: Cluster, probes: Mapping[str, Probe]) -> Iterator[Finding]:
    """No version is known to be wrong. fwupd brings the system's firmware; the network card's comes with a package."""
    for node, version, common in _odd({node: firmware(cluster, node, probe) for node, probe in probes.items()}):
        update = "sudo apt-get update && sudo apt-get install --only-upgrade nvidia-spark-mlnx-firmware-manager"
        fix = f"{update} on that node, then switch it off and on, when the rails are slower there"
        yield Finding(node, "firmware", f"ConnectX-7 {version}", f"{common} as on the others", fix, "warning")


def firmware(cluster: Cluster, node: str, probe: Probe) -> str:
    rails = {rail.at(node).pci for rail in cluster.fabric.rails_of(node)}
    return " and ".join(sorted({p["firmware"] for p in probe["ports"] if p["pci"] in rails and p["firmware"]}))


def _odd(versions: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """Node, its version and that of most: of those that have another one."""
    counts = Counter(filter(None, versions.values()))
    common = counts.most_common(1)[0][0] if counts else ""
    yield from ((node, version, common) for node, version in versions.items() if version not in ("", common))
