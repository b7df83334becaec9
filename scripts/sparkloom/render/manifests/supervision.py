"""What a rank's supervisor is given: its program, the group's plan, and the patterns that name causes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from functools import cache
from typing import Any

from sparkloom.inputs.catalogs import releases
from sparkloom.judge import log_causes, rules
from sparkloom.judge.rules.rule import Rule
from sparkloom.launch import downloads as store
from sparkloom.launch import engines, fabric, patches, patience, ports
from sparkloom.launch.engines import base
from sparkloom.launch.resolve import Launch, Rank
from sparkloom.onnode.rank import reading
from sparkloom.onnode.rank.causes import NOISE
from sparkloom.onnode.rank.plan import ADDRESS, CONFIG, RANK, Member, Rail
from sparkloom.render import pack
from sparkloom.render.manifests import files, names, pod_secrets

FOLDER = "/sparkloom"  # of single files: the API key lies there too
PROGRAM, PLAN, PATTERNS = reading.PROGRAM, reading.PLAN, reading.PATTERNS
PROBES = "probes"  # name of the port where the kubelet asks
COMMAND = ("python3", f"{FOLDER}/{PROGRAM}")


def name(launch: Launch) -> str:
    return f"{names.group(launch.group)}-rank"


def contents(launch: Launch, policy: str) -> dict[str, str]:
    """File beside the program -> text; the plan names the program's stamp, so that it changes with it."""
    return {PLAN: files.as_json(plan(launch, policy)), PATTERNS: patterns(launch.engine)}


@cache
def patterns(engine: str) -> str:
    """What `diagnose` knows of an engine's last words, as JSON; less the lines that only say that something failed."""
    traps = (rule for rule in rules.every() if rule.log_pattern and rule.scope.engine in ("*", engine))
    causes = (cause for cause in log_causes.every() if cause.severity != "info")
    noise = ({"severity": NOISE, "pattern": entry["pattern"]} for entry in log_causes.noise().values())
    told = [*map(_pattern, traps), *map(_pattern, causes), *noise]
    return "[\n" + ",\n".join(json.dumps(entry) for entry in told) + "\n]\n"


def _pattern(one: Rule | log_causes.LogCause) -> dict[str, Any]:
    known = {"rule": one.id, "severity": one.severity, "pattern": str(one.log_pattern), "fix": one.fix}
    return known | ({} if one.ends else {"ends": False})


def plan(launch: Launch, policy: str) -> dict[str, Any]:
    engine = engines.get(launch.engine)
    requests, moves = engines.counters(launch.engine)
    return {
        "program": pack.program(PROGRAM).stamp,
        "profile": launch.profile.name,
        **({"group": group} if (group := names.selector(launch)[names.PROFILE]) != launch.profile.name else {}),
        "engine": launch.engine,
        "release": launch.release,
        "image": launch.image,
        "port": launch.port,
        "control_port": ports.CONTROL,
        "secret": pod_secrets.group_file(launch),
        "probe_port": ports.PROBES,
        "store": base.MODELS,
        "weights": [{"id": model["id"], "revision": model["revision"]} for model in store.wanted(launch.profile)],
        "rdma": bool(launch.fabric),
        "gpu": launch.gpu,
        "rails": len(launch.fabric),
        **({"nccl": fabric.RING_NCCL} if launch.topology.ring and launch.fabric else {}),
        "policy": policy,
        "lends": engine.lends if len(launch.ranks) > 1 else 0,
        "programs": programs(launch),
        "generates": engine.generates,
        "metrics": engine.metrics,
        "requests": list(requests),
        "moves": list(moves),
        "works": list(engine.works),
        "cache": base.CACHE if engine.compiles else "",
        "sealed": base.SEALED if engine.compiles else "",
        "memory_gib": weights_gib(launch),
        "schedulers": list(engine.schedulers),
        "progress": [list(entry) for entry in engine.progress],
        "limits": limits(launch),
        "members": [_member(launch, rank) for rank in launch.ranks],
        "patches": patches.of(launch.profile),
        "package": engine.package,
        "modules": engine.modules(engine.canonical(launch.settings)),
        "given": sorted(files.contents(launch)),
    }


def programs(launch: Launch) -> list[list[str]]:
    """All names of each program that builds of this release call differently."""
    if not releases.known(launch.engine):
        return []
    known = engines.catalog(launch.engine, launch.release).programs.values()
    return [list(names) for names in known if len(names) > 1]


def read(launch: Launch, policy: str) -> str:
    """The hash that every rank tells when it has read what is rendered."""
    texts = {**contents(launch, policy), **files.contents(launch)}
    given = {path: text.encode() for path, text in texts.items()} | {PROGRAM: pack.program(PROGRAM).archive}
    return reading.digest(given)


def limits(launch: Launch) -> dict[str, float]:
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


def config_maps(launch: Launch, namespace: str, texts: Mapping[str, str]) -> list[dict[str, Any]]:
    """`texts`: the same contents that the hash of all that is applied was made from."""
    packed = {"binaryData": {PROGRAM: pack.program(PROGRAM).base64}}
    return [item | packed for item in files.mapped(launch, namespace, name(launch), texts)]


def volume(launch: Launch) -> pod_secrets.Volume:
    keys = (PROGRAM, PLAN, PATTERNS)
    places = [{"mountPath": f"{FOLDER}/{key}", "subPath": key, "readOnly": True} for key in keys]
    return {"name": "supervisor", "configMap": {"name": name(launch)}}, places


def environment(rank: Rank) -> list[dict[str, Any]]:
    """Which rank it is, and of which configuration: the annotation holds a hash over everything applied."""
    annotation = f"metadata.annotations['{names.CONFIG_HASH}']"
    return [
        {"name": RANK, "value": str(rank.index)},
        {"name": CONFIG, "valueFrom": {"fieldRef": {"fieldPath": annotation}}},
        {"name": ADDRESS, "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
    ]
