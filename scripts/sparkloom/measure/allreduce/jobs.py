"""One Job per rank, in the network shape of the serving pods: the same image, nodes, rails, addresses and variables.

They need what a served model holds (the rails' functions and the GPU), so nothing may be served meanwhile.
"""

from __future__ import annotations

from typing import Any

from sparkloom.base.errors import InputError
from sparkloom.inputs.cluster import Cluster
from sparkloom.launch import engines
from sparkloom.launch.resolve import Launch, Rank
from sparkloom.render import pack, template
from sparkloom.render.manifests import files, names, pod

PROGRAM, PLACE = "allreduce", "/sparkloom/allreduce"
PORT = 29571
COMPONENT = "fabric-check"
LABELS = {**names.PART_OF, "app.kubernetes.io/component": COMPONENT}
DEADLINE_S = 900
LARGEST = 1 << 30
NCCL, GLOO = "nccl", "gloo"  # the engine's own; and torch's over TCP, with processors alone


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
