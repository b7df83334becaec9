"""What a rank's supervisor is given: its program, the group's plan, and the patterns that name causes."""

from __future__ import annotations

import json
from dataclasses import asdict
from functools import cache
from typing import Any

from sparkloom.judge import rules
from sparkloom.launch import downloads as store
from sparkloom.launch import engines, fabric, patches, patience, ports
from sparkloom.launch.engines import base
from sparkloom.launch.resolve import Launch, Rank
from sparkloom.onnode.rank import reading
from sparkloom.onnode.rank.order import Member, Rail
from sparkloom.onnode.rank.probes import ADDRESS
from sparkloom.render import pack
from sparkloom.render.manifests import files, names

FOLDER = "/sparkloom"  # of single files: the API key lies there too
PROGRAM, PLAN, PATTERNS = reading.PROGRAM, reading.PLAN, reading.PATTERNS
PROBES = "probes"  # name of the port where the kubelet asks
COMMAND = ("python3", f"{FOLDER}/{PROGRAM}")


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
    engine = engines.get(launch.engine)
    requests, moves = engines.counters(launch.engine)
    return {
        "program": pack.program(PROGRAM).stamp,
        "profile": launch.profile.name,
        "engine": launch.engine,
        "release": launch.release,
        "image": launch.image,
        "port": launch.port,
        "control_port": ports.CONTROL,
        "probe_port": ports.PROBES,
        "store": base.MODELS,
        "weights": [{"id": model["id"], "revision": model["revision"]} for model in store.wanted(launch.profile)],
        "rdma": bool(launch.fabric),
        "rails": len(launch.fabric),
        "policy": policy,
        "generates": engine.generates,
        "metrics": engine.metrics,
        "requests": list(requests),
        "moves": list(moves),
        "works": list(engine.works),
        "cache": base.CACHE,
        "memory_gib": weights_gib(launch),
        "schedulers": list(engine.schedulers),
        "progress": [list(entry) for entry in engine.progress],
        "budgets": budgets(launch),
        "members": [_member(launch, rank) for rank in launch.ranks],
        "patches": patches.of(launch.profile),
        "given": sorted(files.contents(launch)),
    }


def read(launch: Launch, policy: str) -> str:
    """The hash that every rank tells when it has read what is rendered; empty where no supervisor reads anything."""
    texts = {**contents(launch, policy), **files.contents(launch)}
    given = {path: text.encode() for path, text in texts.items()} | {PROGRAM: pack.program(PROGRAM).archive}
    return reading.digest(given) if supervised(launch) else ""


def budgets(launch: Launch) -> dict[str, float]:
    """What follows from this launch; onnode/rank/order.py has the rest."""
    measured = launch.profile.profile.model.measured.load_seconds
    whole = engines.get(launch.engine).whole_prefill(engines.get(launch.engine).canonical(launch.settings))
    longer = {"silence": float(patience.WHOLE_PREFILL)} if whole else {}
    return {"start": patience.start_seconds(measured), **longer}


def weights_gib(launch: Launch) -> float:
    """What one rank loads, as it was measured for this split; 0 where it was not."""
    parallel, measured = launch.topology.parallel, launch.profile.profile.model.measured
    known = (measured.weights_gib_per_rank or {}).get(f"tp{parallel.tp}-ep{parallel.ep}")
    return float(known or 0.0)


def _member(launch: Launch, rank: Rank) -> dict[str, Any]:
    place = rank.place
    rails = tuple(
        Rail(end.rail, fabric.pod_interface(number), end.address, end.prefix, end.mtu, end.hca)
        for number, end in enumerate(place.endpoints)
    )
    return asdict(Member(rank.index, place.node.name, launch.topology.address(place), rails))


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
        {"name": ADDRESS, "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
    ]
