"""Taking the rack down: what it made on this machine goes, counted before `up`, before and after; the caches stay."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from testbed.base import docker, locks, names, store
from testbed.base.shell import out, run
from testbed.base.steps import Say, Step
from testbed.beds.rack import cgroups, cluster, fabric, hub, inventory, sysctls
from testbed.make import binaries

# beside the caches, one per rack: a removed checkout must not take it along
BASELINE = names.CACHE / f"baseline-{names.CLUSTER}.json"


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


def baseline() -> dict[str, int]:
    """What `up` counted before it made anything (Docker itself was there then); empty when that was never counted."""
    return {name: int(str(value)) for name, value in store.read_json(BASELINE).get("counts", {}).items()}


def _count(say: Say) -> None:
    counted = counts()
    store.write_json(BASELINE, {"counts": counted})
    say(", ".join(f"{value} {name}" for name, value in counted.items()))


def _counted() -> bool | str:
    return "a rack is there" if docker.containers() and not BASELINE.exists() else BASELINE.exists()


def steps() -> list[Step]:
    return [Step("baseline", "counts what this machine has, for `down` to compare with", _counted, _count)]


def down(say: Say) -> dict[str, dict[str, int]]:
    """Remove everything; returns the counts as they were first (`up`'s), before and after."""
    first = baseline()
    before = counts()
    hub.stop()
    if docker.answers():
        _remove_containers(say)
        run(["docker", "network", "rm", cluster.NETWORK], check=False)
    say("network namespace of the rails")
    fabric.remove()
    with locks.shared():
        if not docker.others_left() and not locks.others_at_work():
            changed = [docker.put_back(), sysctls.put_back(), cgroups.put_back()]
            if any(changed):
                say("Docker's configuration, the kernel's limits and control groups are as they were before")
            if first and counts()["mounts"] > first["mounts"]:
                fabric.unmount_empty()
    shutil.rmtree(names.STATE, ignore_errors=True)
    keys = inventory.path() / "group_vars/all/keys.yml"  # whoever tried the page has made it
    keys.unlink(missing_ok=True)
    BASELINE.unlink(missing_ok=True)
    return {"first": first, "before": before, "after": counts()}


def _remove_containers(say: Say) -> None:
    containers = docker.containers()
    if not containers:
        return
    say(f"removing {len(containers)} nodes and their volumes")
    kind = binaries.binary("kind", "kind")
    if kind.exists():
        run([kind, "delete", "cluster", "--name", names.CLUSTER], env=cluster.KIND_ENV, check=False)
    left = docker.containers()
    if left:
        run(["docker", "rm", "--force", "--volumes", *left])
