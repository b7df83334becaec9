"""Is each machine one that the rest of a run can work on? Judged before anything is changed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sparkloom.base.finding import Finding
from sparkloom.inputs.cluster import Cluster
from sparkloom.inputs.platform import GB10
from sparkloom.launch import fabric
from sparkloom.launch.resolve import Launch
from sparkloom.render.k3s import machines, paths
from sparkloom.render.k3s.config import Machine
from sparkloom.render.manifests import pod
from sparkloom.site.checks import (
    clocks,
    firewall,
    gpu_speed,
    ground,
    kubernetes_needs,
    management,
    memories,
    pcie,
    ports,
    software,
)
from sparkloom.site.checks.report import REACH, SAID, unreached
from sparkloom.site.foreign import judge as foreign

Probe = Mapping[str, Any]
LONGEST_WORDS = 240
LAYERS = f"{paths.DATA}/agent/containerd/io.containerd.content.v1.content/blobs"  # of images, as they were pulled
UNPACKED = 3  # an image takes its layers, and about twice that unpacked
PYTHON = (
    "apt-get install python3 there; where that is older: `uv python install 3.12` there, and what "
    "`uv python find 3.12` says as ansible_python_interpreter in hosts.yml"
)
SUDO = "run with -K, or let ansible_user use sudo without a password"
# Every maker's GB10 runs DGX OS, whose release file says DGX_NAME="DGX Spark" on all of them; DMI differs by maker.
RELEASE = re.compile(r'DGX_NAME="?DGX.Spark|GB10', re.I)
# The range that NVIDIA's own kernel takes for the GPU of a GB10 (NV-Kernels pull request 396, 2026-04).
GPU_IDS = range(0x2E00, 0x2E40)
ANY = ("disk", "clock", "time sync", "management", "hostname", "firewall")
SPARKS_OWN = ("machine", "kernel", "driver", "gpu", "memory blocks")
ON_RAILS = ("pcie", "firmware")
EXPOSURE = "blast radius"
EXPOSED = (
    "a small machine of any kind in k3s_servers takes the server off the Sparks, before K3s is there (docs/k3s.md); "
    "or cluster.security_mode: device-plugin (docs/what-runs-where.md). Nothing is wrong with what runs"
)
K3S = ("system", "cgroups", "ports", "reach")


@dataclass(frozen=True, slots=True)
class Expected:
    """Every figure that preflight compares with; the names of the variables stand in the advice of the checks."""

    disk_path: str = "/var/lib"
    free_gib: float = 12
    server_free_gib: float = 10  # on a server beside the Sparks
    store: str = ""
    weights_gib: Mapping[str, float] = field(default_factory=dict)  # by node
    images_gib: Mapping[str, float] = field(default_factory=dict)  # by node, packed and unpacked
    driver: str = ""
    clock_seconds: float = 5
    kernels_allowed: Sequence[str] = ()
    memory_gib: float = GB10.free_before_load_gib
    gpu_mhz: float = 1000
    cgroup_v1: bool = False
    k3s_adopt: bool = False  # a K3s that something else installed is taken over
    adopt: bool = False  # what somebody else has set up on the rails is taken over


def names(cluster: Cluster) -> list[str]:
    """The checks, in the order of a report."""
    k3s = [*K3S, EXPOSURE] if cluster.kubernetes.provider == "k3s" else []
    rails = [f"rail {rail.name}" for rail in cluster.fabric.rails]
    return [*REACH, *SPARKS_OWN, "memory", *k3s, *ANY, *rails, *(ON_RAILS if rails else ()), *ground.names()]


def passed_over(cluster: Cluster) -> dict[str, set[str]]:
    """By machine, the checks that are no business of its kind."""
    of_sparks = {*SPARKS_OWN, *ON_RAILS, *(f"rail {rail.name}" for rail in cluster.fabric.rails), *ground.names()}
    return {m.name: set() if m.spark else of_sparks - {"swap"} for m in machines.every(cluster)}


def judge(cluster: Cluster, probes: Mapping[str, Probe], expected: Expected, only: Sequence[str] = ()) -> list[Finding]:
    """The machines of the inventory, or `only` these; one without a probe is a finding of its own."""
    asked = [machine for machine in machines.every(cluster) if not only or machine.name in only]
    read = {m.name: probes[m.name] for m in asked if "system" in probes.get(m.name, {})}
    findings: list[Finding] = []
    plan = fabric.plan(cluster)
    for machine in asked:
        if machine.name not in read:
            findings.append(_unusable(machine.name, probes.get(machine.name, {})))
            continue
        probe = read[machine.name]
        if (uid := probe["system"]["euid"]) != 0:
            findings.append(Finding(machine.name, "sudo", f"uid {uid}", "root", SUDO))
        findings += _spark(machine.name, cluster, probe, expected) if machine.spark else ()
        findings += kubernetes_needs.judge(machine, probe, cgroup_v1=expected.cgroup_v1, adopt=expected.k3s_adopt)
        findings += _disks(machine, probe, expected)
        findings += firewall.judge(cluster, plan, machine, asked, probe["firewall"])
        findings += ports.judge(machine.name, cluster, probe) if machine.spark else ()
        if machine.spark:
            findings += foreign.judge(cluster, plan, machine.name, probe.get("network"), expected.adopt)
    findings += management.judge(asked, read)
    sparks = {machine.name: read[machine.name] for machine in asked if machine.spark and machine.name in read}
    findings += ground.judge(cluster, {machine: read[machine.name] for machine in asked if machine.name in sparks})
    findings += clocks.judge(read, expected.clock_seconds)
    findings += software.drivers_differ(sparks, expected.driver) if cluster.expect_gb10 else ()
    return [*findings, *software.firmware_differs(cluster, sparks)]


def _unusable(node: str, probe: Probe) -> Finding:
    """The node could not be read at all: why, in the words a person can act on."""
    why = " ".join(str(probe.get("msg") or "no answer").split()).removeprefix("Task failed: ")
    why = why if len(why) <= LONGEST_WORDS else f"{why[:LONGEST_WORDS]} ..."
    if probe.get("unreachable") or SAID.search(why):
        return unreached(node, why)
    if re.search(r"sudo|become", why, re.I):
        return Finding(node, "sudo", why, "root through sudo", SUDO)
    if re.search(r"python|interpreter", why, re.I):
        return Finding(node, "python", why.rpartition("it said: ")[2], "Python 3.11 or newer on the node", PYTHON)
    return unreached(node, why)


def is_gb10(probe: Probe) -> bool:
    return bool(RELEASE.search(probe["system"]["release"])) or any(int(gpu, 16) in GPU_IDS for gpu in probe["gpus"])


def _spark(node: str, cluster: Cluster, probe: Probe, expected: Expected) -> Iterator[Finding]:
    """What only a Spark has."""
    yield from software.kernel(node, probe, expected.kernels_allowed)
    if not cluster.expect_gb10:
        return
    if not is_gb10(probe):
        yield _no_gb10(node, probe)
    yield from software.driver(node, probe, expected.driver)
    yield from gpu_speed.judge(node, probe, expected.gpu_mhz)
    yield from memories.judge(node, probe, expected.memory_gib)
    yield from memories.blocks(node, probe)
    yield from pcie.judge(node, cluster, probe)


def _no_gb10(node: str, probe: Probe) -> Finding:
    release, file = probe["system"]["release"], probe["system"]["release_file"]
    name = f"{release.splitlines()[0][:60]} in {file}" if release else f"no {file}"
    gpus = ", ".join(probe["gpus"]) or "none"
    product = probe["system"]["product"] or "unknown"
    found = f"{name}; NVIDIA GPUs on PCI: {gpus}; the machine calls itself {product}"
    expected = 'DGX_NAME="DGX Spark" there, or a GPU 10de:2e00 to 2e3f: a GB10 of any maker'
    return Finding(node, "machine", found, expected, "cluster.expect_gb10: false in cluster.yml, when this is meant")


def _disks(machine: Machine, probe: Probe, expected: Expected) -> Iterator[Finding]:
    """Weights that are there already are not needed again."""
    node = machine.name
    if not machine.spark:
        gib = expected.server_free_gib
        need = {expected.disk_path: (gib, f"{gib:g} GiB for {kubernetes_needs.BOX_NEEDS}")}
        yield from _room(node, probe, need, "another machine as server; preflight_server_free_gib")
        return
    there = probe["content_gib"]
    missing = max(0.0, expected.weights_gib.get(node, 0.0) - there.get(expected.store, 0.0))
    images = max(0.0, expected.images_gib.get(node, 0.0) - UNPACKED * there.get(LAYERS, 0.0))
    uses = f"{expected.free_gib:g} GiB for K3s, logs and spare"
    uses += f" and {images:.0f} GiB of images that are not there yet" if images else ""
    need = {
        expected.disk_path: (expected.free_gib + images, uses),
        expected.store: (missing, f"{missing:.0f} GiB of weights that are not there yet"),
    }
    change = "cluster.model_store in cluster.yml on another disk; preflight_free_gib, preflight_image_gib"
    yield from _room(node, probe, need, change)


def _room(node: str, probe: Probe, need: Mapping[str, tuple[float, str]], change: str) -> Iterator[Finding]:
    """What is needed under each path, and for what, added up per file system."""
    for device in dict.fromkeys(disk["device"] for disk in probe["disks"]):
        here = [disk for disk in probe["disks"] if disk["device"] == device]
        paths = list(dict.fromkeys(disk["path"] for disk in here))
        parts = [need[path] for path in paths if path in need]
        free, wanted = min(disk["free_gib"] for disk in here), sum(gib for gib, _ in parts)
        if free >= wanted:
            continue
        uses = " and ".join(use for gib, use in parts if gib)
        found = f"{free:.1f} GiB free under {' and '.join(paths)}"
        yield Finding(node, "disk", found, f"{wanted:.0f} GiB: {uses}", f"make room, or {change}")


def exposed(cluster: Cluster, launch: Launch) -> Iterator[Finding]:
    """How far somebody gets who takes an engine over: from a privileged pod to its node, from a server's node to all.

    A cluster that was there before is its owner's.
    """
    if not pod.security(launch, cluster)["privileged"]:
        return
    servers = {machine.name for machine in machines.every(cluster) if machine.role == "server"}
    for rank in launch.ranks:
        name = rank.place.node.name
        if name in servers:
            found = f"rank {rank.index}'s privileged pod runs beside K3s' server: who takes the engine has the cluster"
            yield Finding(name, EXPOSURE, found, "a server that serves no model", EXPOSED, "warning")
