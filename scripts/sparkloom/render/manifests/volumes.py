"""What a rank sees of its node's disk and memory: weights, kernel cache, shared memory, engine files."""

from __future__ import annotations

import hashlib
from pathlib import PurePosixPath
from typing import Any

from sparkloom.inputs.cluster import Cluster
from sparkloom.launch import engines
from sparkloom.launch.engines import base
from sparkloom.launch.resolve import Launch
from sparkloom.render.manifests import files, names, supervision

SHARED_MEMORY = "10Gi"  # of memory that GPU and host share: bounded, or a leak there takes the node


def volumes(launch: Launch, cluster: Cluster) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = [
        {"name": "models", "hostPath": {"path": cluster.model_store, "type": "DirectoryOrCreate"}},
        {"name": "cache", "hostPath": {"path": cache_folder(launch, cluster), "type": "DirectoryOrCreate"}},
        {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": SHARED_MEMORY}},
    ]
    if kept := kernels(launch, cluster):
        listed.append({"name": "sealed", "hostPath": {"path": kept["sealed"], "type": "DirectoryOrCreate"}})
    if files.contents(launch):
        listed.append({"name": "files", "configMap": {"name": files.name(launch)}})
    return listed + supervision.volume(launch)


def mounts(launch: Launch) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = [
        {"name": "models", "mountPath": base.MODELS, "readOnly": True},
        {"name": "cache", "mountPath": base.CACHE},
        {"name": "shm", "mountPath": "/dev/shm"},
    ]
    if engines.get(launch.engine).compiles:
        listed.append({"name": "sealed", "mountPath": base.SEALED, "readOnly": True})
    for path in files.contents(launch):
        listed.append({"name": "files", "mountPath": path, "subPath": files.key(path), "readOnly": True})
    return listed + supervision.mount()


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
