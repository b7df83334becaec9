"""What K3s asks of a machine: system, kernel, control groups, ports; and more of one beside the Sparks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from sparkloom.base.finding import Finding
from sparkloom.render.k3s import paths
from sparkloom.render.k3s.config import Machine
from sparkloom.render.k3s.machines import ARCHITECTURES

Probe = Mapping[str, Any]
FAMILIES = ("ubuntu", "debian")  # what the roles were written for; DGX OS calls itself ubuntu
# "Linux kernel version is 5.8 or later" with cgroup v2 (kubernetes.io, "About cgroup v2", 2026)
OLDEST_KERNEL = (5, 8)
# K3s ends without memory ("failed to find memory cgroup"); the kubelet sets limits by the others.
CONTROLLERS = ("cpu", "cpuset", "memory", "pids")
LEAST_GIB = 1.7  # "2 GB" of a server (docs.k3s.io, "Requirements"), less what a kernel keeps
BOX_NEEDS = "K3s, its images and snapshots of etcd"


def judge(machine: Machine, probe: Probe, *, cgroup_v1: bool, adopt: bool) -> Iterator[Finding]:
    """`cgroup_v1`: the site lets its kubelets run with it; `adopt`: a K3s that is there is taken over."""
    if not machine.role:
        return
    yield from _system(machine.name, probe["system"])
    yield from _cgroups(machine.name, probe["cgroups"], allowed=cgroup_v1)
    yield from _ports(machine, probe["listening"], adopt=adopt)
    if not machine.spark:
        yield from _box(machine.name, probe["memory"]["gib"])


def _system(node: str, told: Mapping[str, Any]) -> Iterator[Finding]:
    if told["machine"] not in ARCHITECTURES:
        fix = f"another machine in the place of {node} in hosts.yml"
        yield Finding(node, "system", told["machine"], f"{' or '.join(ARCHITECTURES)}: K3s has no others here", fix)
    release = re.match(r"(\d+)\.(\d+)", told["kernel"])
    if release and tuple(map(int, release.groups())) < OLDEST_KERNEL:
        wanted = ".".join(map(str, OLDEST_KERNEL))
        fix = "a newer release of the system: Debian 11, Ubuntu 22.04 and later have one"
        yield Finding(node, "system", f"kernel {told['kernel']}", f"{wanted} or newer, for the kubelet", fix)
    if not told["systemd"]:
        fix = "another machine in its place, with Debian or Ubuntu"
        yield Finding(node, "system", "no systemd", "systemd: K3s is one of its units", fix)
    if not set(told["families"]) & set(FAMILIES):
        found = told["os"] or "a system that does not say its name"
        fix = "nothing, when K3s starts there; the roles were tried with Debian and Ubuntu"
        yield Finding(node, "system", found, "Debian or Ubuntu, which the roles know", fix, "warning")


def _cgroups(node: str, told: Mapping[str, Any], *, allowed: bool) -> Iterator[Finding]:
    if told["version"] < 2 and not allowed:
        allow = "preflight_cgroup_v1: true where k3s_kubelet_args has fail-cgroup-v1=false"
        fix = f"systemd.unified_cgroup_hierarchy=1 on the kernel's command line, reboot; {allow}"
        yield Finding(node, "cgroups", "version 1", "version 2: the kubelet of this release ends with 1", fix)
    missing = [name for name in CONTROLLERS if name not in told["controllers"]]
    if missing:
        fix = (
            "take cgroup_disable=memory off, and put cgroup_enable=memory on the kernel's command line (on a Raspberry "
            "Pi: /boot/firmware/cmdline.txt), reboot"
        )
        yield Finding(node, "cgroups", f"no {', '.join(missing)}", ", ".join(CONTROLLERS), fix)


def _ports(machine: Machine, listening: list[Mapping[str, Any]], *, adopt: bool) -> Iterator[Finding]:
    """K3s itself may be there; one that something else installed is told once, not for each of its ports."""
    known = {f"{service}.service" for service in paths.SERVICES.values()}
    foreign = {row["unit"] for row in listening if row["unit"] in known and not row["ours"]}
    for unit in sorted(foreign if not adopt else ()):
        fix = "k3s_adopt: true takes it over with its data; or cluster.kubernetes.provider: existing in cluster.yml"
        yield Finding(machine.name, "ports", f"a K3s that something else installed ({unit})", "none, or ours", fix)
    for row in (row for row in listening if row["unit"] not in known):
        who = ", ".join(filter(None, [f"pid {row['pid']}" if row["pid"] else "", row["unit"]])) or "who cannot be told"
        stop = f"sudo systemctl disable --now {row['unit']}" if row["unit"] else "stop it"
        other = f"another machine in the place of {machine.name} in hosts.yml"
        fix = f"{stop}, or {other if row['port'] in machine.listens else 'gateway_port: 8443 in group_vars/all'}"
        found = f"{row['port']} is held by {row['name'] or 'another'} ({who})"
        yield Finding(machine.name, "ports", found, "free for K3s, or held by it", fix)


def _box(node: str, memory: Mapping[str, float]) -> Iterator[Finding]:
    """A machine beside the Sparks; theirs is set by role node_base, and judged as an engine's."""
    if memory["MemTotal"] < LEAST_GIB:
        found, fix = f"{memory['MemTotal']:.1f} GiB", "a machine with more, or one of the Sparks as server"
        expected = "2 GB, the least that K3s' documentation names for a server"
        yield Finding(node, "memory", found, expected, fix, "warning")
    if memory["SwapTotal"] > 0:
        fix = "sudo swapoff -a, and take its line out of /etc/fstab (on a Raspberry Pi: dphys-swapfile)"
        found = f"{memory['SwapTotal']:.1f} GiB of swap"
        yield Finding(node, "swap", found, "none: etcd answers late when it was swapped out", fix, "warning")
