"""Name what others keep in K3s' folders on a machine.

Volumes of the local provisioner, containers that Kubernetes does not know, and pods by the names of their logs. Reads
only; it needs no API server, so that it also tells of a cluster that no longer runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sparkloom.onnode.task import Task

KUBERNETES = "k8s.io"  # containerd's namespace of all that kubelet runs


def inside(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []


def main(
    task: Task,
    volumes: Path,  # where the local provisioner keeps volumes
    containers: Path,  # containerd's folder of running containers, by namespace
    logs: Path,  # where kubelet keeps pods' output
    ours: Sequence[str],  # namespaces whose pods are Kubernetes' or ours
) -> None:
    # `ctr` and its like run containers beside kubelet's
    spaces = [space for space in inside(containers) if space.name != KUBERNETES]
    # kubelet calls a pod's folder NAMESPACE_NAME_UID
    pods = [path.name.split("_") for path in inside(logs)]
    others = [
        *(f"volume {path}" for path in inside(volumes)),
        *(f"container {path.name} (containerd's namespace {space.name})" for space in spaces for path in inside(space)),
        *(f"pod {pod[0]}/{pod[1]}" for pod in pods if len(pod) > 1 and pod[0] not in ours),
    ]
    task.exit_json(others=others)
