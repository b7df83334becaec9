"""Is each machine one that the rest of a run can work on? Judged before anything is changed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from sparkloom.checks import Row
from sparkloom.cluster import Cluster

Probe = Mapping[str, Any]
OLDEST_PYTHON = (3, 9)
RAIL_MBIT = 200_000
# CMA regression: registering RDMA memory fails with ENOMEM unless kexec handover is off (field reports, 2026).
KERNELS_WITHOUT_RDMA_MEMORY = re.compile(r"^7\.0\.0-")


def judge(cluster: Cluster, probes: Mapping[str, Probe], *, free_gib: float) -> list[Row]:
    """Rows for every node of the inventory; a node without a probe is a row of its own."""
    rows: list[Row] = []
    for node in cluster.nodes:
        probe = probes.get(node.name, {})
        if trouble := _unusable(node.name, probe):
            rows.append(trouble)
            continue
        rows += _system(node.name, cluster, probe)
        rows += _disk(node.name, probe, free_gib)
        rows += _rails(node.name, cluster, probe)
    return rows


def _unusable(node: str, probe: Probe) -> Row | None:
    """The node could not be probed at all: why, in the words a person can act on."""
    if "host" in probe:
        return None
    said = " ".join(str(probe.get("msg") or "no answer").split())
    if probe.get("unreachable") or re.search(r"no such container|connection (refused|timed out)", said, re.I):
        return Row(
            node, "connection", said, "a login over ssh", "ansible_host and ansible_user in hosts.yml; ssh-copy-id"
        )
    if re.search(r"sudo|become", said, re.I):
        return Row(
            node, "sudo", said, "root through sudo", "run with -K, or let ansible_user use sudo without a password"
        )
    if re.search(r"python|interpreter", said, re.I):
        return Row(
            node,
            "python",
            said,
            "python3 on the node",
            "apt-get install python3 there, or set ansible_python_interpreter",
        )
    return Row(node, "probe", said, "an answer from the probe", "run again with -vvv")


def _system(node: str, cluster: Cluster, probe: Probe) -> Iterator[Row]:
    host = probe["host"]
    if tuple(host["python"][:2]) < OLDEST_PYTHON:
        python = ".".join(map(str, host["python"]))
        yield Row(node, "python", python, "3.9 or newer", "ansible_python_interpreter in hosts.yml")
    if host["euid"] != 0:
        yield Row(node, "sudo", f"uid {host['euid']}", "root", "ansible_become: true in hosts.yml")
    if KERNELS_WITHOUT_RDMA_MEMORY.match(host["kernel"]) and "kho=off" not in host["cmdline"].split():
        yield Row(
            node,
            "kernel",
            host["kernel"],
            "one that registers RDMA memory (6.17), or kho=off on its command line",
            "boot 6.17, or add kho=off to GRUB_CMDLINE_LINUX",
            "warning",
        )
    if host["ntp_synchronised"] is False:
        yield Row(node, "clock", "not synchronised", "NTP in step", "timedatectl set-ntp true on the node", "warning")
    if not cluster.expect_gb10:
        return
    release, file = host["release"], host["release_file"]
    if not re.search(r"DGX.Spark|GB10", release, re.I):
        found = f"no GB10 in {file} ({release.splitlines()[0][:60]})" if release else f"no {file}"
        yield Row(node, "machine", found, "a GB10 (DGX Spark or an OEM's)", "cluster.expect_gb10 in cluster.yml")
    if not host["driver"]:
        yield Row(node, "driver", "no answer from nvidia-smi", "NVIDIA's driver", "install the driver of DGX OS")


def _disk(node: str, probe: Probe, free_gib: float) -> Iterator[Row]:
    disk = probe["host"]["disk"]
    if disk["free_gib"] < free_gib:
        yield Row(
            node,
            "disk",
            f"{disk['free_gib']:.1f} GiB free under {disk['path']}",
            f"{free_gib:g} GiB",
            "make room, or lower preflight_free_gib",
        )


def _rails(node: str, cluster: Cluster, probe: Probe) -> Iterator[Row]:
    for rail in cluster.fabric.rails:
        where = f"fabric.rails[{rail.name}].pf in fabric.yml"
        link = probe["links"].get(rail.pf)
        name = f"rail {rail.name}"
        if link is None:
            others = ", ".join(sorted(probe["rdma_ports"])) or "none"
            yield Row(node, name, f"no {rail.pf} (RDMA ports: {others})", rail.pf, where)
            continue
        if link["up"] and not link["carrier"]:
            yield Row(
                node, name, f"{rail.pf} without carrier", "a link", f"the cable and the switch's port, or {where}"
            )
        elif link["up"] and link["speed"] < RAIL_MBIT:
            yield Row(
                node,
                name,
                f"{rail.pf} at {link['speed'] / 1000:g} Gb/s",
                f"{RAIL_MBIT / 1000:g} Gb/s",
                "the cable and the switch's port speed; a ConnectX-7 stuck low comes back by powering both ends off",
            )
        wanted = cluster.fabric.vfs_per_rail
        if link["total_vfs"] < wanted:
            yield Row(
                node,
                name,
                f"{rail.pf} offers {link['total_vfs']} virtual functions",
                f"{wanted}",
                "SRIOV_EN and NUM_OF_VFS in its firmware (mlxconfig), or fabric.vfs_per_rail in fabric.yml",
            )
