"""What a rank's supervisor is given: its program, the group's plan, and the patterns that name causes."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from sparkloom.judge import rules
from sparkloom.launch import downloads as store
from sparkloom.launch import engines, fabric, patches
from sparkloom.launch.engines import base
from sparkloom.launch.resolve import Launch, Rank
from sparkloom.render import pack
from sparkloom.render.manifests import files, names

FOLDER = "/sparkloom"  # of single files: the API key lies there too
PROGRAM, PLAN, PATTERNS = "rank", "plan.json", "rules.json"
COMMAND = ("python3", f"{FOLDER}/{PROGRAM}")
START_SECONDS = 45 * 60  # 5x the longest load measured (490 s), and room for graphs and kernels built cold


def supervised(launch: Launch) -> bool:
    """Every engine whose image has Python. llama.cpp's has none: its ranks run as they are."""
    return engines.get(launch.engine).python


def name(launch: Launch) -> str:
    return f"{names.group(launch.profile.name)}-rank"


def contents(launch: Launch, policy: str) -> dict[str, str]:
    """File beside the program -> text; the plan names the program's stamp, so that it changes with it."""
    if not supervised(launch):
        return {}
    return {PLAN: files.as_json(plan(launch, policy)), PATTERNS: patterns(launch.engine)}


@cache
def patterns(engine: str) -> str:
    """What the rules know of an engine's last words, as JSON."""
    known = [
        {"rule": rule.id, "severity": rule.severity, "pattern": str(rule.log_pattern), "fix": rule.fix}
        for rule in rules.every()
        if rule.log_pattern and rule.scope.engine in ("*", engine)
    ]
    return "[\n" + ",\n".join(json.dumps(entry) for entry in known) + "\n]\n"


def plan(launch: Launch, policy: str) -> dict[str, Any]:
    profile, engine = launch.profile.profile, engines.get(launch.engine)
    measured = profile.model.measured.load_seconds or 0
    return {
        "program": pack.program(PROGRAM).stamp,
        "profile": launch.profile.name,
        "engine": launch.engine,
        "release": launch.release,
        "image": launch.image,
        "port": launch.port,
        "store": base.MODELS,
        "weights": [{"id": model["id"], "revision": model["revision"]} for model in store.wanted(launch.profile)],
        "rdma": bool(launch.fabric),
        "rails": len(launch.fabric),
        "policy": policy,
        "generates": engine.generates,
        "schedulers": list(engine.schedulers),
        "progress": [list(entry) for entry in engine.progress],
        "budgets": {"start": max(START_SECONDS, 3 * measured)},
        "members": [_member(launch, rank) for rank in launch.ranks],
        "patches": patches.of(launch.profile),
    }


def _member(launch: Launch, rank: Rank) -> dict[str, Any]:
    rails = [
        {
            "name": endpoint.rail,
            "interface": fabric.pod_interface(number),
            "address": endpoint.address,
            "prefix": endpoint.prefix,
            "mtu": endpoint.mtu,
            "hca": endpoint.hca,
        }
        for number, endpoint in enumerate(rank.place.endpoints)
    ]
    place = rank.place
    return {
        "rank": rank.index,
        "node": place.node.name,
        "address": launch.topology.address(place),
        "rails": rails,
    }


def config_maps(launch: Launch, namespace: str, policy: str) -> list[dict[str, Any]]:
    packed = {"binaryData": {PROGRAM: pack.program(PROGRAM).base64}}
    return [item | packed for item in files.mapped(launch, namespace, name(launch), contents(launch, policy))]


def volume(launch: Launch) -> list[dict[str, Any]]:
    return [{"name": "supervisor", "configMap": {"name": name(launch)}}] if supervised(launch) else []


def mount(launch: Launch) -> list[dict[str, Any]]:
    keys = (PROGRAM, PLAN, PATTERNS) if supervised(launch) else ()
    return [{"name": "supervisor", "mountPath": f"{FOLDER}/{key}", "subPath": key, "readOnly": True} for key in keys]


def environment(launch: Launch, rank: Rank) -> list[dict[str, Any]]:
    """Which rank it is, and of which configuration: the annotation holds a hash over everything applied."""
    if not supervised(launch):
        return []
    annotation = f"metadata.annotations['{names.CONFIG_HASH}']"
    return [
        {"name": "SPARKLOOM_RANK", "value": str(rank.index)},
        {"name": "SPARKLOOM_CONFIG", "valueFrom": {"fieldRef": {"fieldPath": annotation}}},
    ]
