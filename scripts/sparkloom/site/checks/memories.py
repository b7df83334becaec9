"""Is the memory free that a load needs? CPU and GPU share it, so whatever holds it holds the model up."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sparkloom.base.finding import Finding

KEPT_GIB = 16  # kernel, drivers and caches that no process is charged for stay far below this on an idle Spark
# Four Sparks that had served for a week, with 118 GiB available: 0.4 GiB and less in blocks of 16 MiB, a load that took
# 106 s stood still for ten minutes, another ended with NV_ERR_NO_MEMORY; one fresh from a reboot had 46 GiB in them
# (FujitsuPolycom/sparkring issue 173, 2026-09; its own check asks for 6.25 GiB).
LARGE_GIB = 6.25
# With less free the page cache holds the rest, and gives it back in whatever pieces it has: that says nothing.
TELLING_GIB = 16


def judge(node: str, probe: Mapping[str, Any], needed_gib: float) -> Iterator[Finding]:
    """A warning: what holds memory now may be gone before the load. A model that is served in a pod is fine."""
    memory = probe["memory"]
    free = memory["gib"]["MemAvailable"]
    users = memory["gpu_processes"]
    if free >= needed_gib or any(user["in_pod"] for user in users):
        return
    if users:
        holder = "held by " + ", ".join(f"{user['name']} (pid {user['pid']})" for user in users) + " on the GPU"
        cure = "stop that engine, unless it is to stay and the model fits beside it"
    else:
        holder, cure = _holder(memory, memory["gib"]["MemTotal"] - free)
    available = f"{free:.1f} of {memory['gib']['MemTotal']:.1f} GiB available; {holder}"
    wanted = f"{needed_gib:g} GiB, which `sparkloom plan` counts with (preflight_memory_gib)"
    yield Finding(node, "memory", available, wanted, cure, "warning")


def blocks(node: str, probe: Mapping[str, Any]) -> Iterator[Finding]:
    """Free, but in crumbs? A driver maps in large blocks, and the kernel searches for each that it has not."""
    memory = probe["memory"]
    free, large = memory["blocks"]["free_gib"], memory["blocks"]["large_gib"]
    if memory["gpu_processes"] or free < TELLING_GIB or large >= LARGE_GIB:
        return
    found = f"{large:.1f} of {free:.1f} GiB free lie in blocks of 16 MiB or more"
    expected = f"{LARGE_GIB:g} GiB: with less a load crawls, or ends with NV_ERR_NO_MEMORY"
    now = "sync; echo 3 | sudo tee /proc/sys/vm/drop_caches; echo 1 | sudo tee /proc/sys/vm/compact_memory"
    fix = f"{now}; reboot the node when preflight says the same again"
    yield Finding(node, "memory blocks", found, expected, fix, "warning")


def free_to_cuda(probes: Mapping[str, Mapping[str, Any]]) -> dict[str, tuple[float, float]]:
    """By idle node what CUDA calls free, and what it could be once the page cache gives back what it holds.

    A node on which something uses the GPU, or whose CUDA cannot be asked, says nothing about a load.
    """
    found = {}
    for node, probe in probes.items():
        memory = probe.get("memory") or {}
        free = memory.get("cuda_free_gib")
        if free is None or memory["gpu_processes"]:
            continue
        host = memory["gib"]
        cache = max(0.0, host["Cached"] - host["Shmem"])
        found[node] = (round(free, 2), round(max(free, min(free + cache, host["MemAvailable"])), 2))
    return found


def returned(now: Mapping[str, Mapping[str, Any]], before: Mapping[str, float], slack_gib: float) -> Iterator[Finding]:
    """After a model was stopped: does each node have again what it had before that model was loaded?"""
    for node, memory in now.items():
        wanted = before.get(node, 0.0) - slack_gib
        if memory["available_gib"] >= wanted:
            continue
        holder, cure = _holder(memory, memory["total_gib"] - memory["available_gib"])
        found = f"{memory['available_gib']:.1f} GiB available {memory['waited']:.0f} s after the stop; {holder}"
        loaded = f"{before[node]:.0f} before the model was loaded, less model_serving_memory_slack_gib"
        yield Finding(node, "memory is back", found, f"{wanted:.0f} GiB: {loaded}", cure)


def _holder(memory: Mapping[str, Any], used: float) -> tuple[str, str]:
    """What holds memory that no GPU process is known to hold, and what gives it back."""
    kept = used - memory["resident_gib"]
    if kept > KEPT_GIB:
        holder = f"{kept:.0f} GiB are charged to no process, as after an engine that crashed"
        return holder, "reboot that node; when the memory is still gone, switch it off and on"
    largest = ", ".join(f"{user['name']} {user['gib']:.0f} GiB" for user in memory["largest"] if user["gib"] >= 1)
    return f"the largest: {largest or 'many small processes'}", "stop what the node need not run"
