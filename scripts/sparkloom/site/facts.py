"""What this machine knows of a site and its cluster does not: the plan of its groups, proofs, the last measurements.

The page's server reads it from the cluster, where playbooks/gateway.yml writes it; `status --watch` makes it anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sparkloom import case
from sparkloom.base import json_text, repository
from sparkloom.base.errors import InputError
from sparkloom.case import Inventory
from sparkloom.inputs import group_name, serving
from sparkloom.inputs.cluster import Cluster
from sparkloom.inputs.profile import LoadedProfile
from sparkloom.inputs.serving import Serving, Wanted
from sparkloom.judge import fleet, profile_status
from sparkloom.judge.fleet import needs
from sparkloom.judge.fleet.result import FleetPlan, Grouped
from sparkloom.launch import engines
from sparkloom.launch.groups import Running
from sparkloom.site.groups import observed

NUMBERS = ("n1", "n4", "n8")
LEVEL = ("concurrency", "ok", "requests", "decode_tok_s", "sum_tok_s", "wall_tok_s", "accept_length")


@dataclass(frozen=True)
class Planned:
    """What the inventory asks for, and what a plan makes of it. `problem`: why there is no list, or no plan of it."""

    cluster: Cluster
    listed: bool = False  # the inventory has a list of groups
    listing: Serving | None = None
    plan: FleetPlan | None = None
    problem: str = ""

    def one(self, name: str) -> Grouped | None:
        return next((one for one in self.plan.grouped if one.group.name == name), None) if self.plan else None

    def facts(self) -> dict[str, Any]:
        """As onnode/now takes it; the same again while nothing changes. Groups without a place are told, too."""
        cluster, folder = self.cluster, repository.kept(self.cluster.name)
        sparks = needs.platforms(cluster)
        placed = {one["name"]: one for one in (self.plan.as_dict()["groups"] if self.plan else ())}
        return {
            "site": cluster.name,
            "listed": self.listed,
            "problem": self.problem,
            "nodes": [
                {"name": node.name, "kubernetes_node": node.kubernetes_node, **needs.memory(sparks[node.name])}
                for node in cluster.nodes
            ],
            "groups": [
                _group(entry, self.one(entry.called), placed.get(entry.called, {}), folder)
                for entry in (self.listing.entries if self.listing else ())
            ],
            "rails": [
                {
                    "name": rail.name,
                    "subnet": rail.subnet,
                    "link_gbit": cluster.fabric.rail_gbit,
                    "mtu": cluster.fabric.mtu,
                }
                for rail in cluster.fabric.rails
            ],
            "fabric": measured(cluster),
            "gauges": {name: list(how) for engine in engines.measured() for name, how in engine["gauges"].items()},
        }


def planned(inventory: Inventory, runs: Mapping[str, Running] | None = None) -> Planned:
    """`runs`: what runs there; else what was recorded of it. A list that cannot be read or packed says why."""
    cluster = case.cluster(inventory)
    if isinstance(inventory, Cluster):
        return Planned(cluster)
    try:
        listing = serving.read(inventory, cluster)
    except InputError as error:
        listed = serving.has_list(inventory)
        return Planned(cluster, listed, problem=f"which groups there should be is not known: {error.problems[0]}")
    known = observed.recorded(cluster) if runs is None else runs
    try:
        plan = fleet.plan(listing, cluster, known)
    except InputError as error:
        return Planned(cluster, listing.listed, listing, problem=f"the list cannot be had: {error.problems[0]}")
    what = "the list does not pack" if listing.listed else "the profile does not fit this site"
    refused = f"{what}: {plan.reason}; sparkloom fleet plan says what would help"
    return Planned(cluster, listing.listed, listing, plan, "" if plan.fits is not False else refused)


def _group(entry: Wanted, one: Grouped | None, shown: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """`shown`: the same as the plan's own JSON has it; one that has no place is told, too."""
    names = [shown.get("alias") or entry.alias or entry.called, entry.called]
    told = {
        "name": entry.called,
        "label": group_name.label(entry.called),
        "nodes": shown.get("nodes", []),
        "fraction": entry.fraction,
        "idle_minutes": entry.idle_minutes,
        "turns": entry.turns,
        "names": list(dict.fromkeys(names)),
        "profile": entry.profile,
    }
    if one is None:
        return told
    loaded, memory = one.need.loaded, dict(shown["memory"])
    return {
        **told,
        "model": shown["model"],
        "engine": shown["engine"],
        "profile": loaded.name,
        "release": loaded.profile.engine.release,
        "takes_gib": memory.pop("takes_gib"),
        "memory": memory,
        "evidence": _evidence(loaded),
        "bench": _bench(folder / "bench", loaded.name),
    }


def _evidence(loaded: LoadedProfile) -> dict[str, Any]:
    """The proof that a profile brings along: who ran it, and how fast it was there."""
    best = profile_status.best_evidence(loaded.profile)
    if best is None:
        return {"status": "unvalidated"}
    speeds = {key: getattr(best.numbers, key, None) for key in NUMBERS}
    return {"status": best.status, "claim": best.claim, "source": best.source, "date": best.date, **speeds}


def measured(cluster: Cluster) -> dict[str, Any] | None:
    """What playbooks/verify.yml, or the first `up` after a boot, measured last, less what it said of each run."""
    report = json_text.kept(repository.kept(cluster.name) / "fabric_check.json")
    if not report:
        return None
    pairs = [
        {
            **{key: pair.get(key) for key in ("client", "server", "sum_gbit", "verdict")},
            "rails": {name: {"gbit": rail.get("gbit")} for name, rail in (pair.get("rails") or {}).items()},
        }
        for pair in report.get("pairs") or ()
    ]
    return {"time": report.get("time"), "verdict": report.get("verdict"), "pairs": pairs}


def _bench(folder: Path, profile: str) -> dict[str, Any] | None:
    """The last complete run of a profile: names of files end with their time."""
    for file in sorted(folder.glob("bench-*.json"), key=lambda file: file.stem[-16:], reverse=True):
        data = json_text.kept(file)
        if data.get("complete") and data.get("provenance", {}).get("profile") == profile:
            levels = [
                {key: level.get(key) for key in LEVEL}
                | {
                    "ttft_p50_ms": (level.get("ttft_ms") or {}).get("p50"),
                    "text": (level.get("guard") or {}).get("verdict"),
                }
                for level in data.get("levels") or ()
            ]
            told = data["provenance"]
            return {
                "measured": told.get("measured"),
                "valid": bool(data.get("valid")),
                "levels": levels,
                "config_hash": told.get("config_hash"),
            }
    return None
