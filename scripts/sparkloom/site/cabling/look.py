"""From what the nodes answered to what was found: merged, judged, kept, and told; and the playbook that asks them."""

from __future__ import annotations

import json
import subprocess
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sparkloom import case
from sparkloom.base import amount, files, repository
from sparkloom.base.errors import InputError
from sparkloom.inputs import answers
from sparkloom.inputs.cluster import Cluster
from sparkloom.inputs.inventory import require_own
from sparkloom.site import play
from sparkloom.site.cabling import declare, picture, shape
from sparkloom.site.cabling.wires import Facts
from sparkloom.site.checks import report

FILE = "cabling.json"
KEPT_LINES = 8
Answers = Mapping[str, Mapping[str, Any]]


def merge(machines: Answers, links: Answers) -> dict[str, dict[str, Any]]:
    """By node; its ports as they were while it listened, when those that had been off were on."""
    told = {}
    for node, machine in machines.items():
        heard = links.get(node, {})
        if "ports" not in machine or "heard" not in heard:
            continue
        ports = [{**port, **heard["links"].get(port["interface"], {})} for port in machine["ports"]]
        for port in ports:  # what becomes the inventory's fabric.yml
            answers.require(answers.PCI, port["pci"], node)
            if port["interface"]:
                answers.require(answers.INTERFACE, port["interface"], node)
        told[node] = {"ports": ports, **{key: heard[key] for key in ("heard", "lldp", "neighbours")}}
        told[node]["hotplug"] = machine.get("hotplug", {})
    return told


def judge(cluster: Cluster, facts: Facts) -> shape.Found:
    names = [node.name for node in cluster.nodes]
    return shape.judge(names, facts, cluster.management_interface, cluster.fabric)


def text(cluster: Cluster, found: shape.Found) -> str:
    """What is on each wire, what is not as it should be, and what could be served instead."""
    lines = [f"found: {found.kind}"]
    for wire in found.wires:
        speed = min(cage.speed for cage in wire.cages)
        behind = f", by {' and '.join(wire.switches)}" if wire.switches else ""
        lines.append(f"  {wire}{behind} ({speed} Gb/s)")
    lines += [report.table(found.findings)] if found.findings else []
    return "\n".join([*lines, *_proposed(cluster, found)])


def _proposed(cluster: Cluster, found: shape.Found) -> Iterator[str]:
    """The first way to part the Sparks with its lines, the others by their names."""
    if not found.splits:
        return
    yield "\ncan be served as it is cabled, by inventories of these Sparks (hosts.yml) with these lines (fabric.yml);"
    yield "each a folder with a cluster.name, a kubeconfig and k3s_servers of its own, where discover writes the same:"
    first, *others = found.splits
    for part in first:
        wire = next((f", by {wire}" for wire in part.wires if len(wire.nodes) > 1), " alone: no rails")
        yield f"\n  {' + '.join(part.nodes)}{wire}"
        if part.used:
            yield textwrap.indent(declare.lines(declare.fabric(part, cluster)), "    ").rstrip()
    if others:
        ways = (" and ".join(" + ".join(part.nodes) for part in way) for way in others)
        yield f"\n  or {', or '.join(ways)}: --json has their lines too"


def as_dict(cluster: Cluster, found: shape.Found) -> dict[str, Any]:
    return {
        "kind": found.kind,
        "rail_gbit": found.rail_gbit,
        "wires": [
            {"cages": [asdict(cage) for cage in wire.cages], "switches": list(wire.switches)} for wire in found.wires
        ],
        "ring": list(found.ring),
        "picture": picture.lines(found, picture.ASCII),
        "used": {node: cage.name for node, cage in found.used.items()},
        "findings": [report.as_dict(finding) for finding in found.findings],
        "inventories": [
            [{"nodes": list(part.nodes), "fabric": declare.fabric(part, cluster)} for part in way]
            for way in found.splits
        ],
    }


def keep(folder: Path, cluster: Cluster, facts: Facts, found: shape.Found) -> Path:
    """cabling.json of the site: what each node told, and what it was taken for."""
    when = datetime.now(UTC).isoformat(timespec="seconds")
    content = {"site": cluster.name, "when": when, **as_dict(cluster, found), "nodes": facts}
    return files.write(folder / FILE, json.dumps(content, indent=1, sort_keys=True) + "\n")


def discover(
    inventory: Path, extra: Iterable[str], say: Callable[[str], object], *, dry: bool
) -> tuple[shape.Found, dict[str, Any]]:
    """What was found, and what became of fabric.yml: its path, and whether it was changed."""
    cluster = case.cluster(inventory)
    require_own(cluster.example)
    facts = ask(cluster, inventory, extra, say)
    found = judge(cluster, facts)
    path = declare.path_of(inventory)
    changed = bool(found.used) and declare.write(found, path, dry=dry)
    return found, {"path": str(path), "changed": changed, "written": changed and not dry}


def ask(cluster: Cluster, inventory: Path, extra: Iterable[str], say: Callable[[str], object]) -> dict[str, Any]:
    """The facts of all nodes; InputError when Ansible could not even begin."""
    kept = repository.kept(cluster.name) / FILE
    kept.unlink(missing_ok=True)
    play.require_collections()
    command = play.command(repository.REPO / "playbooks" / "cabling.yml", inventory, extra)
    ports = f"the ports of {amount.of(len(cluster.nodes), 'node')}"
    say(f"listening on {ports}; a switch needs half a minute to say its name\n")
    done = subprocess.run(
        command,
        cwd=repository.WORK,
        env=play.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    if not kept.exists():
        lines = [line.strip() for line in done.stdout.splitlines() if line.strip()]
        failed = next((at for at, line in enumerate(lines) if line.startswith("fatal: ")), len(lines) - KEPT_LINES)
        words = " ".join(lines[max(0, failed) :][:KEPT_LINES])
        raise InputError.single("playbooks/cabling.yml", f"ansible-playbook ended before: {words}", rule="ansible")
    return dict(json.loads(kept.read_text())["nodes"])
