"""Everything that is known before a run begins, about every machine: read once, judged together, kept."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sparkloom import case
from sparkloom.base.finding import Finding, errors
from sparkloom.inputs import site_memory
from sparkloom.inputs.cluster import Cluster
from sparkloom.launch.groups import Placed
from sparkloom.launch.resolve import Launch
from sparkloom.onnode.weights.layout import Store
from sparkloom.render.k3s import machines
from sparkloom.site.checks import host, management, memories, software
from sparkloom.site.checks.host import Expected
from sparkloom.site.checks.report import COLUMNS, LINES, as_dict, report, screen

GIB = 2**30


@dataclass(frozen=True, slots=True)
class Judged:
    cluster: Cluster
    nodes: list[str]
    probes: Mapping[str, Any]
    findings: list[Finding]

    @property
    def failed(self) -> bool:
        return bool(errors(self.findings))

    @property
    def report(self) -> str:
        text = report(self.nodes, host.names(self.cluster), self.findings, host.passed_over(self.cluster))
        versions = {software.firmware(self.cluster, n, p) for n, p in self.probes.items() if "ports" in p} - {""}
        return f"{text}\nfirmware of the rails' ports: {', '.join(sorted(versions))}" if versions else text

    @property
    def screen(self) -> str:
        """Of a report that a window has no room for the worst, and where all of it is."""
        if sum(1 + len(line) // COLUMNS for line in self.report.splitlines()) < LINES:
            return ""
        worst = screen(self.nodes, host.names(self.cluster), self.findings)
        again = "; mend it, then the same command again" if self.failed else ""
        return f"{worst}\nall of it: build/{self.cluster.name}/preflight.txt{again}"

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The findings as data."""
        return [as_dict(finding) for finding in self.findings]

    def keep(self, folder: Path) -> str:
        """preflight.json of the site: facts and judgements, for `jq`; and preflight.txt, the report."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "preflight.json"
        content: dict[str, Any] = {
            "site": self.cluster.name,
            "when": datetime.now(UTC).isoformat(timespec="seconds"),
            "failed": self.failed,
            "rows": self.rows,
            "nodes": {node: _kept(probe) for node, probe in self.probes.items()},
        }
        path.write_text(json.dumps(content, indent=1, sort_keys=True) + "\n")
        path.with_suffix(".txt").write_text(f"{self.report}\n")
        sparks = {node.name: self.probes[node.name] for node in self.cluster.nodes if node.name in self.probes}
        site_memory.keep(folder / site_memory.FILE, memories.free_to_cuda(sparks), content["when"])
        return str(path)


def _kept(probe: Mapping[str, Any]) -> Mapping[str, Any]:
    """Without the text of a node's own files: which there are is enough."""
    if "network" not in probe:
        return probe
    network = probe["network"]
    files = [{key: file[key] for key in ("kind", "path")} for file in network["files"]]
    return {**probe, "network": {**network, "files": files}}


def reads(cluster: Cluster, settings: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """By machine what to read there: free room, content of folders, holders of ports, who answers, and the GPU.

    A server that is no Spark has no store, and a GPU of its own is its owner's.
    """
    if cluster.kubernetes.provider == "k3s":
        machines.members(cluster)  # what is missing or twice in hosts.yml is said now, not when K3s is installed
    every, store = machines.every(cluster), [cluster.model_store]
    folders = [*_folders(cluster, settings), host.LAYERS]
    return {
        machine.name: {
            "paths": [settings["disk_path"], *(store if machine.spark else ())],
            "folders": folders if machine.spark else [],
            "listens": [*machine.listens, *(settings["endpoint_ports"] if machine.spark and machine.role else ())],
            "reach": [{"name": o.name, "address": o.address} for o in management.reaches(machine, every)],
            "cuda": machine.spark and bool(settings["cuda"]),
        }
        for machine in every
    }


def _folders(cluster: Cluster, settings: Mapping[str, Any]) -> list[str]:
    models = [launch.profile.profile.model.id for launch in _launches(cluster, settings)]
    return [str(Store(cluster.model_store).repository(model)) for model in dict.fromkeys(models)]


def _launches(cluster: Cluster, settings: Mapping[str, Any]) -> list[Launch]:
    """Of the profile, or of each group of the site's list."""
    groups = settings.get("groups") or ([{"profile": settings["profile"]}] if settings["profile"] else [])
    return [case.judge(group["profile"], cluster, seat=Placed.of(group.get("seat"))).launch for group in groups]


def judge(
    cluster: Cluster, probes: Mapping[str, Any], settings: Mapping[str, Any], *, only: Sequence[str] = ()
) -> Judged:
    nodes = [machine.name for machine in machines.every(cluster) if not only or machine.name in only]
    wanted = _expected(cluster, settings)
    folders = _folders(cluster, settings)
    # of the store only the folder of this model was measured
    read = {
        node: {**probe, "content_gib": {**known, cluster.model_store: sum(known.get(f, 0.0) for f in folders)}}
        if (known := probe.get("content_gib")) is not None
        else probe
        for node, probe in probes.items()
    }
    findings = [*host.judge(cluster, read, wanted, only), *_exposed(cluster, settings, nodes)]
    return Judged(cluster, nodes, probes, findings)


def _exposed(cluster: Cluster, settings: Mapping[str, Any], nodes: Collection[str]) -> list[Finding]:
    found = [one for launch in _launches(cluster, settings) for one in host.exposed(cluster, launch)]
    return [finding for finding in dict.fromkeys(found) if finding.where in nodes]


def _expected(cluster: Cluster, settings: Mapping[str, Any]) -> Expected:
    counted: dict[str, float] = {}
    if settings["count_weights"]:
        for (node, _), size in _checkpoints(cluster, settings).items():
            counted[node] = counted.get(node, 0.0) + size
    images = {(rank.place.node.name, one.image) for one in _launches(cluster, settings) for rank in one.ranks}
    packed = {node: settings["image_gib"] * n for node, n in Counter(node for node, _ in images).items()}
    told = {field.name: settings[field.name] for field in fields(Expected) if field.name in settings}
    return Expected(**told, store=cluster.model_store, weights_gib=counted, images_gib=packed)


def _checkpoints(cluster: Cluster, settings: Mapping[str, Any]) -> dict[tuple[str, str], float]:
    """By node and model: two groups of one model on a Spark read the same files."""
    return {
        (node, launch.profile.profile.model.id): size
        for launch in _launches(cluster, settings)
        for node, size in weights(launch, cluster).items()
    }


def weights(launch: Launch, cluster: Cluster) -> dict[str, float]:
    """GiB of the whole checkpoint, for every node that will hold it: each keeps all of it."""
    from sparkloom.judge.capacity import verdict

    model = launch.profile.profile.model
    size = (model.checkpoint.size_gb or 0) * 1e9 / GIB
    if not size:
        # the publisher's figure is not known: what the ranks load is the least that a checkpoint has
        figure = verdict.plan(launch, cluster).fit.memory.get("weights_gib_per_rank")
        size = figure.number * len(launch.ranks) if figure else 0.0
    size += (model.draft.size_gb or 0) * 1e9 / GIB if model.draft else 0.0
    return {rank.place.node.name: size for rank in launch.ranks}
