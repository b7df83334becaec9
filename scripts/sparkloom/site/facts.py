"""What this machine knows of a site and its cluster does not: the plan of its groups, proofs, the last measurements.

The page's server reads it from the cluster, where playbooks/gateway.yml writes it; `status --watch` makes it anew.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from sparkloom import case
from sparkloom.base import repository
from sparkloom.base.errors import InputError
from sparkloom.inputs.cluster import Cluster
from sparkloom.inputs.fleet_record import Running
from sparkloom.inputs.profile import LoadedProfile
from sparkloom.judge import profile_status
from sparkloom.judge.fleet import needs
from sparkloom.judge.fleet.result import FleetPlan, Grouped
from sparkloom.launch import engines
from sparkloom.launch.memory import constants

NUMBERS = ("n1", "n4", "n8")
LEVEL = ("concurrency", "ok", "requests", "decode_tok_s", "sum_tok_s", "wall_tok_s", "accept_length")


def facts(
    inventory: str | Path | Mapping[str, Any] | None, runs: Mapping[str, Running] | None = None
) -> dict[str, Any]:
    """As onnode/now/picture.py takes it; the same again while nothing changes.

    A list that cannot be read or packed leaves its groups out, and says why.
    """
    cluster = case.cluster(inventory)
    folder = repository.kept(cluster.name)
    plan, problem = _plan(inventory, runs)
    told = plan.as_dict()["groups"] if plan else []
    return {
        "site": cluster.name,
        "problem": problem,
        "nodes": list(_nodes(cluster)),
        "groups": [_group(one, shown, folder) for one, shown in zip(plan.grouped if plan else (), told, strict=True)],
        "rails": [
            {"name": rail.name, "subnet": rail.subnet, "link_gbit": cluster.fabric.rail_gbit, "mtu": cluster.fabric.mtu}
            for rail in cluster.fabric.rails
        ],
        "fabric": _fabric(folder / "fabric_check.json"),
        "gauges": {name: list(how) for engine in engines.measured() for name, how in engine["gauges"].items()},
    }


def _plan(inventory: Any, runs: Mapping[str, Running] | None) -> tuple[FleetPlan | None, str]:
    try:
        plan = case.fleet(inventory, runs=runs)
    except InputError as error:
        return None, str(error.problems[0])
    return plan, "" if plan.grouped or not plan.unplaced else f"the list does not fit this site: {plan.reason}"


def _nodes(cluster: Cluster) -> Iterator[dict[str, Any]]:
    guard = float(constants.GUARD_FLOOR_GIB.value or 0)
    sparks = needs.platforms(cluster)
    for node in cluster.nodes:
        spark = sparks[node.name]
        yield {
            "name": node.name,
            "kubernetes_node": node.kubernetes_node,
            "usable_gib": spark.usable_gib,
            "free_gib": round(needs.free_gib(spark), 2),
            "guard_gib": guard,
        }


def _group(one: Grouped, shown: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """`shown`: the same as the plan's own JSON has it."""
    loaded = one.need.loaded
    memory = dict(shown["memory"])
    return {
        **{key: shown[key] for key in ("name", "label", "nodes", "fraction", "idle_minutes", "model", "engine")},
        "profile": loaded.name,
        "turns": one.need.entry.turns,
        "names": list(dict.fromkeys([shown["alias"], shown["name"]])),
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


def _fabric(file: Path) -> dict[str, Any] | None:
    """What playbooks/verify.yml measured last, less what it said of each run."""
    report = _json(file)
    if not report:
        return None
    pairs = [
        {**{key: pair.get(key) for key in ("client", "server", "sum_gbit", "verdict")},
         "rails": {name: {"gbit": rail.get("gbit")} for name, rail in (pair.get("rails") or {}).items()}}
        for pair in report.get("pairs") or ()
    ]  # fmt: skip
    return {"time": report.get("time"), "verdict": report.get("verdict"), "pairs": pairs}


def _bench(folder: Path, profile: str) -> dict[str, Any] | None:
    """The last complete run of a profile: names of files end with their time."""
    for file in sorted(folder.glob("bench-*.json"), key=lambda file: file.stem[-16:], reverse=True):
        data = _json(file)
        if data.get("complete") and data.get("provenance", {}).get("profile") == profile:
            levels = [{key: level.get(key) for key in LEVEL}
                      | {"ttft_p50_ms": (level.get("ttft_ms") or {}).get("p50"),
                         "text": (level.get("guard") or {}).get("verdict")}
                      for level in data.get("levels") or ()]  # fmt: skip
            told = data["provenance"]
            return {"measured": told.get("measured"), "valid": bool(data.get("valid")), "levels": levels,
                    "config_hash": told.get("config_hash")}  # fmt: skip
    return None


def _json(file: Path) -> dict[str, Any]:
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return data if isinstance(data, dict) else {}
