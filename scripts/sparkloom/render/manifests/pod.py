"""One rank: a pod with the engine's command on its own node, with its own addresses, and the set that keeps it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

from sparkloom.inputs.cluster import Cluster
from sparkloom.launch import engines, ports
from sparkloom.launch.engines import base
from sparkloom.launch.resolve import Launch, Rank
from sparkloom.launch.values import EnvVar
from sparkloom.onnode.now.labels import NETWORKS
from sparkloom.render import template
from sparkloom.render.manifests import access, attachments, files, names, pod_secrets, supervision

GRACE_SECONDS = 60  # a supervisor drains for 40 s and gives the engine 10 s to end


def stateful_set(launch: Launch, cluster: Cluster, rank: Rank) -> dict[str, Any]:
    """Without the hash over what is applied, which covers all ranks: `stamp` adds it."""
    ends, offered, held = rank.place.endpoints, devices(launch, cluster), list(volumes(launch, cluster, rank))
    return template.one(
        "manifests/rank",
        name=names.rank(launch, rank.index),
        namespace=cluster.namespace,
        labels=names.labels(launch, rank.index),
        selector=names.selector(launch, rank.index),
        headless=access.headless_name(launch),
        annotations={NETWORKS: attachments.annotation(ends)} if ends else {},
        priority=names.PRIORITY,
        node=rank.place.node.kubernetes_node,
        grace=GRACE_SECONDS,
        image=launch.image,
        command=list(supervision.COMMAND),
        # the engine's own words, behind the supervisor, whose Python every image has
        args=["--", *map(literal, (*rank.argv, *pod_secrets.key_words(launch, rank)))],
        env=[
            *(environment(variable) for variable in rank.env),
            *asked_of_the_runtime(launch, cluster),
            *supervision.environment(rank),
        ],
        ports=[
            *([{"name": "api", "containerPort": launch.port}] if rank.index == 0 else []),
            {"name": supervision.PROBES, "containerPort": ports.PROBES},
        ],
        requests={"cpu": "500m", "memory": "2Gi", **offered},
        limits=offered,
        security=security(launch, cluster),
        mounts=[{"name": volume["name"], **place} for volume, places in held for place in places],
        volumes=[volume for volume, _ in held],
    )


def stamp(stateful_set: dict[str, Any], digest: str) -> dict[str, Any]:
    """With the hash over what is applied: a change anywhere renews every rank."""
    for metadata in (stateful_set["metadata"], stateful_set["spec"]["template"]["metadata"]):
        metadata["annotations"][names.CONFIG_HASH] = digest
    return stateful_set


def security(launch: Launch, cluster: Cluster) -> dict[str, Any]:
    """What a rank may do on its node.

    Privileged only where RDMA needs it: host-device moves the network interface into the pod but not its
    /dev/infiniband devices, and without them NCCL has no fabric (forum post on RoCE in K3s, 2026-04). Where these are
    handed out, IPC_LOCK lets it pin memory, and SYS_PTRACE lets it shut a socket of its engine (rank/procs.py).
    """
    if launch.fabric and cluster.security_mode == "privileged":
        return {"privileged": True}
    return {
        "privileged": False,
        "allowPrivilegeEscalation": False,
        "capabilities": {"add": ["IPC_LOCK", "SYS_PTRACE"], "drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def devices(launch: Launch, cluster: Cluster) -> dict[str, str]:
    """Extended resources of one rank: its GPU, and the rails' RDMA devices where a plugin hands them out."""
    limits = {"nvidia.com/gpu": "1"}
    if handed_out(launch, cluster) and cluster.rdma_resource:
        limits[cluster.rdma_resource] = "1"
    return limits


def asked_of_the_runtime(launch: Launch, cluster: Cluster) -> list[dict[str, Any]]:
    """NVIDIA's container runtime gives a pod that has a GPU the verbs files of all RDMA devices, if it says this.

    Whatever number a function has on its node, and wherever its network interface is: a device plugin that looks for
    interfaces loses those that went into pods. In the runtime's modes legacy, csv and jit-cdi (nvidia-container-toolkit
    v1.18.2, internal/modifier); where somebody set its mode to cdi it does nothing, and the supervisor names the file.
    """
    asked = handed_out(launch, cluster) and not cluster.rdma_resource
    return [{"name": "NVIDIA_MOFED", "value": "enabled"}] if asked else []


def handed_out(launch: Launch, cluster: Cluster) -> bool:
    """Whether the rails' RDMA devices come into pods one by one: a privileged one has all devices."""
    return bool(launch.fabric) and cluster.security_mode == "device-plugin"


def environment(variable: EnvVar) -> dict[str, Any]:
    return {"name": variable.name, "value": literal(variable.value)}


def literal(text: str) -> str:
    """Kubernetes replaces $(NAME) in words and values; here every text means itself."""
    return text.replace("$(", "$$(")


SHARED_MEMORY = "10Gi"  # of memory that GPU and host share: bounded, or a leak there takes the node


def volumes(launch: Launch, cluster: Cluster, rank: Rank) -> Iterator[pod_secrets.Volume]:
    yield _of_node("models", cluster.model_store), [{"mountPath": base.MODELS, "readOnly": True}]
    yield _of_node("cache", cache_folder(launch, cluster)), [{"mountPath": base.CACHE}]
    yield {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": SHARED_MEMORY}}, [{"mountPath": "/dev/shm"}]
    if kept := kernels(launch, cluster):
        yield _of_node("sealed", kept["sealed"]), [{"mountPath": base.SEALED, "readOnly": True}]
    if paths := files.contents(launch):
        places = [{"mountPath": path, "subPath": files.key(path), "readOnly": True} for path in paths]
        yield {"name": "files", "configMap": {"name": files.name(launch)}}, places
    yield supervision.volume(launch)
    yield from pod_secrets.volumes(launch, rank)


def _of_node(name: str, folder: str) -> dict[str, Any]:
    return {"name": name, "hostPath": {"path": folder, "type": "DirectoryOrCreate"}}


def cache_folder(launch: Launch, cluster: Cluster) -> str:
    """One folder per group and image: what one model's code leaves there no other profile executes, and kernels
    compiled for one build crash another in ways that name no cause. Group names may meet, hence the hash of both.
    """
    return cache_of(launch.group, launch.image, cluster)


def cache_of(group: str, image: str, cluster: Cluster) -> str:
    """By the two names alone, as a record of what was applied has them."""
    both = hashlib.sha256(f"{group}\n{image}".encode()).hexdigest()[:12]
    return str(PurePosixPath(cluster.model_store).parent / "cache" / f"{names.group(group)}-{both}")


def kernels(launch: Launch, cluster: Cluster) -> dict[str, str]:
    """Where a node has the kernels that this profile's engine compiles, and the copy that no engine writes."""
    cache = cache_folder(launch, cluster)
    return {"cache": cache, "sealed": f"{cache}.sealed"} if engines.get(launch.engine).compiles else {}
