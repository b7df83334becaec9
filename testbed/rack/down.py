"""Taking the rack down: everything it made on this machine goes, counted before and after; the caches stay."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from testbed.rack import binaries, cluster, docker, fabric, names, sysctls
from testbed.rack.shell import out, run
from testbed.rack.steps import Say


def counts() -> dict[str, int]:
    """What a rack leaves traces in, on the whole machine."""

    def lines(*argv: str) -> int:
        return len(out(argv, check=False).splitlines()) if shutil.which(argv[0]) else 0

    links = json.loads(out(["ip", "-j", "-d", "link"]) or "[]")
    kinds = [link.get("linkinfo", {}).get("info_kind") for link in links]
    there = docker.answers()
    rules = out(["iptables-save"], check=False) if shutil.which("iptables-save") else ""
    return {
        "containers": lines("docker", "ps", "-aq") if there else 0,
        "volumes": lines("docker", "volume", "ls", "-q") if there else 0,
        "docker networks": lines("docker", "network", "ls", "-q") if there else 0,
        "veths": kinds.count("veth"),
        "bridges": kinds.count("bridge"),
        "network namespaces": lines("ip", "netns", "list"),
        "mounts": len(Path("/proc/self/mounts").read_text().splitlines()),
        "iptables rules": sum(line.startswith("-A") for line in rules.splitlines()),
    }


def down(say: Say) -> dict[str, dict[str, int]]:
    """Remove everything; returns the counts before and after."""
    before = counts()
    if docker.answers():
        _remove_containers(say)
        run(["docker", "network", "rm", cluster.NETWORK], check=False)
    say("network namespace of the rails")
    fabric.remove()
    if not docker.others_left():
        changed = [docker.put_back(), sysctls.put_back()]
        if any(changed):
            say("Docker's configuration and the kernel's limits are as they were before")
    shutil.rmtree(names.STATE, ignore_errors=True)
    return {"before": before, "after": counts()}


def _remove_containers(say: Say) -> None:
    found = docker.containers()
    if not found:
        return
    say(f"removing {len(found)} nodes and their volumes")
    kind = binaries.binary("kind", "kind")
    if kind.exists():
        run([kind, "delete", "cluster", "--name", names.CLUSTER], env=cluster.KIND_ENV, check=False)
    left = docker.containers()
    if left:
        run(["docker", "rm", "--force", "--volumes", *left])
