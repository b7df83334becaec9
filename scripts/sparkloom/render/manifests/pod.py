"""One rank: a pod with the engine's command on its own node, with its own addresses, and the set that keeps it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sparkloom.base.errors import InputError
from sparkloom.inputs.cluster import Cluster
from sparkloom.launch import ports
from sparkloom.launch.resolve import Launch, Rank
from sparkloom.launch.values import EnvVar
from sparkloom.onnode.images import reference
from sparkloom.render.manifests import access, attachments, names, pod_secrets, supervision, volumes

GRACE_SECONDS = 60  # a supervisor drains for 40 s and gives the engine 10 s to end


def stateful_set(launch: Launch, cluster: Cluster, rank: Rank, template: dict[str, Any], digest: str) -> dict[str, Any]:
    """One of one replica per rank: never two pods of a rank at once, always on the same node.

    They start together (Parallel): ranks wait for each other, so an order would be a deadlock. The hash in the
    annotation covers all ranks, so that a change anywhere renews every one of them.
    """
    inner = template["metadata"]
    annotated = {**inner, "annotations": {**inner["annotations"], names.CONFIG_HASH: digest}}
    metadata = {
        "name": names.rank(launch, rank.index),
        "namespace": cluster.namespace,
        "labels": names.labels(launch, rank.index),
        "annotations": {names.CONFIG_HASH: digest},
    }
    spec = {
        "serviceName": access.headless_name(launch),
        "replicas": 1,
        "podManagementPolicy": "Parallel",
        "revisionHistoryLimit": 3,
        "selector": {"matchLabels": names.selector(launch, rank.index)},
        "template": {"metadata": annotated, "spec": template["spec"]},
    }
    return names.manifest("apps/v1", "StatefulSet", metadata, spec=spec)


def template(launch: Launch, cluster: Cluster, rank: Rank) -> dict[str, Any]:
    metadata: dict[str, Any] = {"labels": names.labels(launch, rank.index), "annotations": {}}
    if rank.place.endpoints:
        metadata["annotations"][attachments.NETWORKS] = attachments.annotation(rank.place.endpoints)
    spec = {
        "runtimeClassName": "nvidia",
        "priorityClassName": names.PRIORITY,
        "nodeSelector": {"kubernetes.io/hostname": rank.place.node.kubernetes_node},
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
        "enableServiceLinks": False,  # a Service named sglang would set SGLANG_PORT=tcp://..., which SGLang reads
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": GRACE_SECONDS,
        "containers": [container(launch, cluster, rank)],
        "volumes": [*volumes.volumes(launch, cluster), *pod_secrets.volumes(launch, rank)],
    }
    return {"metadata": metadata, "spec": spec}


def container(launch: Launch, cluster: Cluster, rank: Rank) -> dict[str, Any]:
    offered = devices(launch, cluster)
    listening = [{"name": "api", "containerPort": launch.port}] if rank.index == 0 else []
    listening.append({"name": supervision.PROBES, "containerPort": ports.PROBES})
    return {
        "name": "engine",
        "image": launch.image,
        "imagePullPolicy": "IfNotPresent",
        **command(launch, rank),
        "env": [
            *(environment(variable) for variable in rank.env),
            *asked_of_the_runtime(launch, cluster),
            *supervision.environment(rank),
        ],
        **({"ports": listening} if listening else {}),
        "resources": {"requests": {"cpu": "500m", "memory": "2Gi", **offered}, "limits": offered},
        "securityContext": security(launch, cluster),
        **supervision.probes(),
        "terminationMessagePolicy": "FallbackToLogsOnError",  # the last words of a crash, in the pod's status
        "volumeMounts": [*volumes.mounts(launch), *pod_secrets.mounts(launch, rank)],
    }


def security(launch: Launch, cluster: Cluster) -> dict[str, Any]:
    """What a rank may do on its node.

    Privileged only where RDMA needs it: host-device moves the network interface into the pod but not its
    /dev/infiniband devices, and without them NCCL has no fabric (forum post on RoCE in K3s, 2026-04). In
    `device-plugin` mode these are handed out and IPC_LOCK is enough to pin memory. No engine needs another capability.
    """
    if launch.fabric and cluster.security_mode == "privileged":
        return {"privileged": True}
    return {
        "privileged": False,
        "allowPrivilegeEscalation": False,
        "capabilities": {"add": ["IPC_LOCK"], "drop": ["ALL"]},
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


def command(launch: Launch, rank: Rank) -> dict[str, Sequence[str]]:
    """What the container runs: the engine's own words, behind the supervisor, whose Python every image has."""
    words = [literal(word) for word in (*rank.argv, *pod_secrets.key_words(launch, rank))]
    return {"command": list(supervision.COMMAND), "args": ["--", *words]}


def environment(variable: EnvVar) -> dict[str, Any]:
    if variable.secret:
        name, key = variable.secret
        return {"name": variable.name, "valueFrom": {"secretKeyRef": {"name": name, "key": key}}}
    return {"name": variable.name, "value": literal(variable.value)}


def literal(text: str) -> str:
    """Kubernetes replaces $(NAME) in words and values; here every text means itself."""
    return text.replace("$(", "$$(")


def pinned(launch: Launch, digest: str) -> Launch:
    """The same launch with its image fixed to `digest`, as a registry or a node's store resolved it.

    A tag can come to mean another image between two nodes' pulls.
    """
    if not reference.DIGEST.fullmatch(digest):
        message = f"'{digest}' is no image digest; expected sha256: and 64 hex digits"
        raise InputError.single(launch.profile.document.file, message, rule="bad-digest")
    return replace(launch, image=f"{launch.image.partition('@')[0]}@{digest}")
