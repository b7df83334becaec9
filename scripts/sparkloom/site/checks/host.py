"""Is each machine one that the rest of a run can work on? Judged before anything is changed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sparkloom.base.finding import Finding
from sparkloom.inputs.cluster import Cluster
from sparkloom.inputs.platform import GB10
from sparkloom.launch import fabric
from sparkloom.site.checks import clocks, kernels, memories, ports
from sparkloom.site.foreign import judge as foreign

Probe = Mapping[str, Any]
OLDEST_PYTHON = (3, 9)
LONGEST_WORDS = 240
# Every maker's GB10 runs DGX OS, whose release file says DGX_NAME="DGX Spark" on all of them; DMI differs by maker.
RELEASE = re.compile(r'DGX_NAME="?DGX.Spark|GB10', re.I)
# The range that NVIDIA's own kernel takes for the GPU of a GB10 (NV-Kernels pull request 396, 2026-04).
GPU_IDS = range(0x2E00, 0x2E40)
CHECKS = ("connection", "sudo", "python", "machine", "kernel", "driver", "memory", "disk", "clock", "time sync")


@dataclass(frozen=True, slots=True)
class Expected:
    """Every figure that preflight compares with; the names of the variables stand in the advice of the checks."""

    disk_path: str = "/var/lib"
    free_gib: float = 40
    store: str = ""
    weights_gib: Mapping[str, float] = field(default_factory=dict)  # by node
    driver: str = ""
    clock_seconds: float = 5
    kernels_allowed: tuple[str, ...] = ()
    memory_gib: float = GB10.free_before_load_gib
    adopt: bool = False  # what somebody else has set up on the rails is taken over


def names(cluster: Cluster) -> list[str]:
    """The checks, in the order of a report."""
    return [*CHECKS, *(f"rail {rail.name}" for rail in cluster.fabric.rails), "firmware"]


def judge(cluster: Cluster, probes: Mapping[str, Probe], expected: Expected, only: Sequence[str] = ()) -> list[Finding]:
    """The nodes of the inventory, or `only` these; a node without a probe is a finding of its own."""
    asked = [node.name for node in cluster.nodes if not only or node.name in only]
    read = {node: probes[node] for node in asked if "system" in probes.get(node, {})}
    findings: list[Finding] = []
    plan = fabric.plan(cluster)
    for node in asked:
        if node not in read:
            findings.append(_unusable(node, probes.get(node, {})))
            continue
        findings += _system(node, read[node])
        findings += _machine(node, cluster, read[node], expected)
        findings += kernels.judge(node, read[node], expected.kernels_allowed)
        findings += memories.judge(node, read[node], expected.memory_gib) if cluster.expect_gb10 else ()
        findings += _disks(node, read[node], expected)
        findings += ports.judge(node, cluster, read[node])
        findings += foreign.judge(cluster, plan, node, read[node].get("network"), expected.adopt)
    return [*findings, *clocks.judge(read, expected.clock_seconds), *_firmware(cluster, read)]


def _unusable(node: str, probe: Probe) -> Finding:
    """The node could not be read at all: why, in the words a person can act on."""
    why = " ".join(str(probe.get("msg") or "no answer").split()).removeprefix("Task failed: ")
    why = why if len(why) <= LONGEST_WORDS else f"{why[:LONGEST_WORDS]} ..."
    if probe.get("unreachable") or re.search(r"no such container|connection (refused|timed out)", why, re.I):
        fix = "ansible_host and ansible_user in hosts.yml; ssh-copy-id"
        return Finding(node, "connection", why, "a login over ssh", fix)
    if re.search(r"sudo|become", why, re.I):
        fix = "run with -K, or let ansible_user use sudo without a password"
        return Finding(node, "sudo", why, "root through sudo", fix)
    if re.search(r"python|interpreter", why, re.I):
        fix = "apt-get install python3 there, or set ansible_python_interpreter"
        return Finding(node, "python", why, "python3 on the node", fix)
    return Finding(node, "connection", why, "an answer", "run again with -vvv")


def _system(node: str, probe: Probe) -> Iterator[Finding]:
    system = probe["system"]
    if tuple(system["python"][:2]) < OLDEST_PYTHON:
        python = ".".join(map(str, system["python"]))
        yield Finding(node, "python", python, "3.9 or newer", "ansible_python_interpreter in hosts.yml")
    if system["euid"] != 0:
        yield Finding(node, "sudo", f"uid {system['euid']}", "root", "ansible_become: true in hosts.yml")


def is_gb10(probe: Probe) -> bool:
    return bool(RELEASE.search(probe["system"]["release"])) or any(int(gpu, 16) in GPU_IDS for gpu in probe["gpus"])


def _machine(node: str, cluster: Cluster, probe: Probe, expected: Expected) -> Iterator[Finding]:
    if not cluster.expect_gb10:
        return
    if not is_gb10(probe):
        release, file = probe["system"]["release"], probe["system"]["release_file"]
        name = f"{release.splitlines()[0][:60]} in {file}" if release else f"no {file}"
        gpus = ", ".join(probe["gpus"]) or "none"
        product = probe["system"]["product"] or "unknown"
        yield Finding(
            node,
            "machine",
            f"{name}; NVIDIA GPUs on PCI: {gpus}; the machine calls itself {product}",
            'DGX_NAME="DGX Spark" there, or a GPU 10de:2e00 to 2e3f: a GB10 of any maker',
            "cluster.expect_gb10: false in cluster.yml, when this is meant",
        )
    driver = probe["driver"]
    if not driver["version"]:
        loaded = f"; the kernel has {driver['loaded']} loaded" if driver["loaded"] else ""
        yield Finding(
            node,
            "driver",
            f"no answer from nvidia-smi ({driver['why'] or 'empty'}){loaded}",
            f"NVIDIA's driver {expected.driver}".rstrip(),
            "reboot when the driver was just updated; else install the driver of DGX OS",
        )
    elif expected.driver and not f"{driver['version']}.".startswith(f"{expected.driver}."):
        yield Finding(
            node,
            "driver",
            driver["version"],
            f"{expected.driver}, which the measured figures were made with",
            "nothing, when it serves well; preflight_driver names the version that you expect",
            "warning",
        )


def _disks(node: str, probe: Probe, expected: Expected) -> Iterator[Finding]:
    """What is needed under each path, added up per file system; weights that are there already are not needed again."""
    there = float(probe["content_gib"].get(expected.store, 0)) if expected.store else 0.0
    missing = max(0.0, expected.weights_gib.get(node, 0.0) - there)
    need = {expected.disk_path: expected.free_gib, expected.store: missing}
    for device in dict.fromkeys(disk["device"] for disk in probe["disks"]):
        disks = [disk for disk in probe["disks"] if disk["device"] == device]
        parts = {path: need.get(path, 0.0) for path in dict.fromkeys(disk["path"] for disk in disks)}
        free, wanted = min(disk["free_gib"] for disk in disks), sum(parts.values())
        if free >= wanted:
            continue
        weights = parts.get(expected.store, 0.0)
        uses = [f"{gib:g} GiB for images and logs" for path, gib in parts.items() if path == expected.disk_path]
        uses += [f"{weights:.0f} GiB of weights that are not there yet"] if weights else []
        yield Finding(
            node,
            "disk",
            f"{free:.1f} GiB free under {' and '.join(parts)}",
            f"{wanted:.0f} GiB: {' and '.join(uses)}",
            "make room, or cluster.model_store in cluster.yml on another disk; preflight_free_gib",
        )


def _firmware(cluster: Cluster, probes: Mapping[str, Probe]) -> Iterator[Finding]:
    """Not the same on all nodes: the odd ones out are named. No version is known to be wrong."""
    versions = {node: firmware(cluster, node, probe) for node, probe in probes.items()}
    counts = Counter(filter(None, versions.values()))
    if len(counts) < 2:
        return
    common = counts.most_common(1)[0][0]
    for node, version in versions.items():
        if version and version != common:
            fix = "fwupdmgr update on that node, when the rails are slower there"
            yield Finding(node, "firmware", f"ConnectX-7 {version}", f"{common} as on the others", fix, "warning")


def firmware(cluster: Cluster, node: str, probe: Probe) -> str:
    rails = {rail.at(node).pci for rail in cluster.fabric.rails}
    return " and ".join(sorted({p["firmware"] for p in probe["ports"] if p["pci"] in rails and p["firmware"]}))
