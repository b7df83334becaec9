"""From a profile to a verdict: the Jobs are made, waited for, read, judged and taken away again.

One Job per rank, in the network shape of the serving pods: the same image, nodes, rails, addresses and variables. They
need what a served model holds (the rails' functions and the GPU), so nothing may be served meanwhile.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from sparkloom import case
from sparkloom.base.errors import InputError
from sparkloom.inputs.cluster import Cluster
from sparkloom.launch import engines
from sparkloom.launch.resolve import Launch, Rank
from sparkloom.measure.allreduce import verdict
from sparkloom.render import pack, template
from sparkloom.render.manifests import files, names, pod
from sparkloom.site import client
from sparkloom.site.client import Client

PROGRAM, PLACE = "allreduce", "/sparkloom/allreduce"
PORT = 29571
COMPONENT = "fabric-check"
LABELS = {**names.PART_OF, "app.kubernetes.io/component": COMPONENT}
DEADLINE_S = 900
LARGEST = 1 << 30
NCCL, GLOO = "nccl", "gloo"  # the engine's own; and torch's over TCP, with processors alone
LOOK_S = 2.0
GONE_S = 120.0  # for the Jobs of an earlier check
SELECTOR = client.selector(LABELS)
GRACE_S = 90.0  # the others, after one has failed: NCCL's watchdog needs a minute to say what it saw


def run(
    profile: str, inventory: case.Inventory, say: Callable[[str], object], *, largest: int, backend: str = NCCL
) -> dict[str, Any]:
    """The verdict over the pods of this profile; InputError where the pods would have nothing to run on."""
    from kubernetes.client import BatchV1Api

    cluster = case.cluster(inventory)
    launch = case.judge(profile, cluster).launch
    made = objects(launch, cluster, largest=largest, backend=backend)
    reached = client.of(cluster)
    batch = BatchV1Api(reached.core.api_client)
    return carry_out(launch, made, reached, batch, say, rail_gbit=cluster.fabric.rail_gbit)


def carry_out(
    launch: Launch,
    objects: list[dict[str, Any]],
    reached: Client,
    batch: Any,
    say: Callable[[str], object],
    *,
    rail_gbit: float = 200,
    sleep: Callable[[float], None] = time.sleep,
    now: Callable[[], float] = time.monotonic,
) -> dict[str, Any]:
    served = reached.pods(names.ENGINES)
    if served:
        message = f"{served[0].metadata.name} is served there and holds the rails and the GPUs; stop the model first"
        raise InputError.single(launch.profile.name, message, rule="in-use")
    _remove(reached, batch)
    for _ in range(int(GONE_S / LOOK_S)):
        if not batch.list_namespaced_job(reached.namespace, label_selector=SELECTOR).items:
            break
        sleep(LOOK_S)
    program, *made = objects
    held = str(program["metadata"]["name"])
    try:
        reached.put_config_map(held, program["data"], binary=program["binaryData"])
        for job in made:
            batch.create_namespaced_job(reached.namespace, job)
        phases = _wait(reached, len(made), say, sleep, now)
        logs = {rank: reached.whole(pod) for rank, (pod, _) in phases.items()}
    finally:
        _remove(reached, batch)
        reached.remove_config_map(held)
    judged = verdict.judge(
        logs, rails=len(launch.fabric), nodes=len(launch.ranks), rail_gbit=rail_gbit, ring=launch.topology.ring
    )
    return {"profile": launch.profile.name, "ranks": {rank: phase for rank, (_, phase) in phases.items()}, **judged}


def _wait(
    reached: Client,
    count: int,
    say: Callable[[str], object],
    sleep: Callable[[float], None],
    now: Callable[[], float],
) -> dict[str, tuple[str, str]]:
    """Rank -> pod and phase, when all have ended, or one has failed and the others had time to say what they saw."""
    begun, failed, shown = now(), 0.0, ""
    while True:
        pods = reached.pods(LABELS)
        phases = {str(p.metadata.labels[names.RANK]): (str(p.metadata.name), str(p.status.phase)) for p in pods}
        told = ", ".join(f"rank {rank} {phase}" for rank, (_, phase) in sorted(phases.items()))
        if told != shown:
            say(f"{now() - begun:.0f} s: {told or 'no pod yet'}\n")
            shown = told
        ended = [phase for _, phase in phases.values() if phase in ("Succeeded", "Failed")]
        failed = failed or (now() if "Failed" in ended else 0.0)
        if len(ended) >= count or (failed and now() - failed > GRACE_S) or now() - begun > DEADLINE_S:
            return phases
        sleep(LOOK_S)


def _remove(reached: Client, batch: Any) -> None:
    """Jobs of this check, with their pods."""
    batch.delete_collection_namespaced_job(reached.namespace, label_selector=SELECTOR, propagation_policy="Foreground")


def objects(launch: Launch, cluster: Cluster, *, largest: int = LARGEST, backend: str = NCCL) -> list[dict[str, Any]]:
    """The program's ConfigMap and the Jobs; InputError where no all-reduce crosses the network."""
    if not launch.topology.distributed:
        raise InputError.single(
            launch.profile.name, "runs on one node: no all-reduce crosses the network", rule="one-node"
        )
    if not engines.get(launch.engine).nccl:
        others = " or ".join(name for name in engines.names() if engines.get(name).nccl)
        message = f"{launch.engine}'s ranks speak no NCCL; choose a profile of {others}"
        raise InputError.single(launch.profile.name, message, rule="no-torch")
    return [_program(launch, cluster), *(_job(launch, cluster, rank, largest, backend) for rank in launch.ranks)]


def name(launch: Launch, rank: int | None = None) -> str:
    group = names.group(launch.profile.name)
    return f"{group}-allreduce" if rank is None else f"{group}-check{rank}"


def _program(launch: Launch, cluster: Cluster) -> dict[str, Any]:
    metadata = {"name": name(launch), "namespace": cluster.namespace, "labels": LABELS}
    files_of_nccl = {files.key(path): content for path, content in _nccl_conf(launch).items()}
    binary = {PROGRAM: pack.program(PROGRAM).base64}
    return names.manifest("v1", "ConfigMap", metadata, data=files_of_nccl, binaryData=binary)


def _nccl_conf(launch: Launch) -> dict[str, str]:
    """As in the serving pods: the image's own file decides nothing."""
    return files.NCCL_CONF if launch.fabric else {}


def _job(launch: Launch, cluster: Cluster, rank: Rank, largest: int, backend: str) -> dict[str, Any]:
    serving = pod.stateful_set(launch, cluster, rank)["spec"]["template"]
    (engine,) = serving["spec"]["containers"]
    (job,) = template.objects(
        "manifests/allreduce",
        **{
            **serving["spec"],
            **engine,
            "name": name(launch, rank.index),
            "namespace": cluster.namespace,
            "labels": {**LABELS, names.RANK: str(rank.index)},
            "annotations": serving["metadata"]["annotations"],
            "deadline": DEADLINE_S,
            "program": PLACE,
            "config_map": name(launch),
            "env": _environment(launch, cluster, rank, largest, backend),
            "mounts": _mounts(launch),
        },
    )
    return job


def _environment(launch: Launch, cluster: Cluster, rank: Rank, largest: int, backend: str) -> list[dict[str, Any]]:
    told = {
        "RANK": str(rank.index),
        "WORLD_SIZE": str(len(launch.ranks)),
        "MASTER_ADDR": launch.topology.address(launch.topology.head),
        "MASTER_PORT": str(PORT),
        "ALLREDUCE_LARGEST": str(largest),
        "ALLREDUCE_BACKEND": backend,
        "ALLREDUCE_ADDRESS": launch.topology.address(rank.place),
        "NCCL_DEBUG": "INFO",
        "NCCL_DEBUG_SUBSYS": "INIT,NET,ENV",
    }
    return [
        *(pod.environment(one) for one in rank.env if one.name not in told),
        *pod.asked_of_the_runtime(launch, cluster),
        *({"name": key, "value": value} for key, value in told.items()),
    ]


def _mounts(launch: Launch) -> list[dict[str, Any]]:
    placed = {PLACE: PROGRAM, **{path: files.key(path) for path in _nccl_conf(launch)}}
    program = [{"name": "program", "mountPath": path, "subPath": key, "readOnly": True} for path, key in placed.items()]
    return [*program, {"name": "shm", "mountPath": "/dev/shm"}]
