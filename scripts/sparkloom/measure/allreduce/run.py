"""From a profile to a verdict: the Jobs are made, waited for, read, judged and taken away again."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from sparkloom import case
from sparkloom.base.errors import InputError
from sparkloom.launch.resolve import Launch
from sparkloom.measure.allreduce import jobs, verdict
from sparkloom.render.manifests import names
from sparkloom.site import client
from sparkloom.site.client import Client

LOOK_S = 2.0
GONE_S = 120.0  # for the Jobs of an earlier check
SELECTOR = client.selector(jobs.LABELS)
GRACE_S = 90.0  # the others, after one has failed: NCCL's watchdog needs a minute to say what it saw


def run(
    profile: str, inventory: case.Inventory, say: Callable[[str], object], *, largest: int, backend: str = jobs.NCCL
) -> dict[str, Any]:
    """The verdict over the pods of this profile; InputError where the pods would have nothing to run on."""
    from kubernetes.client import BatchV1Api

    cluster = case.cluster(inventory)
    launch = case.judge(profile, cluster).launch
    objects = jobs.objects(launch, cluster, largest=largest, backend=backend)
    reached = client.of(cluster)
    batch = BatchV1Api(reached.core.api_client)
    return carry_out(launch, objects, reached, batch, say, rail_gbit=cluster.fabric.rail_gbit)


def carry_out(
    launch: Launch, objects: list[dict[str, Any]], reached: Client, batch: Any, say: Callable[[str], object],
    *, rail_gbit: float = 200, sleep: Callable[[float], None] = time.sleep, now: Callable[[], float] = time.monotonic,
) -> dict[str, Any]:  # fmt: skip
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
    reached: Client, count: int, say: Callable[[str], object], sleep: Callable[[float], None],
    now: Callable[[], float],
) -> dict[str, tuple[str, str]]:  # fmt: skip
    """Rank -> pod and phase, when all have ended, or one has failed and the others had time to say what they saw."""
    begun, failed, shown = now(), 0.0, ""
    while True:
        pods = reached.pods(jobs.LABELS)
        phases = {str(p.metadata.labels[names.RANK]): (str(p.metadata.name), str(p.status.phase)) for p in pods}
        told = ", ".join(f"rank {rank} {phase}" for rank, (_, phase) in sorted(phases.items()))
        if told != shown:
            say(f"{now() - begun:.0f} s: {told or 'no pod yet'}\n")
            shown = told
        ended = [phase for _, phase in phases.values() if phase in ("Succeeded", "Failed")]
        failed = failed or (now() if "Failed" in ended else 0.0)
        if len(ended) >= count or (failed and now() - failed > GRACE_S) or now() - begun > jobs.DEADLINE_S:
            return phases
        sleep(LOOK_S)


def _remove(reached: Client, batch: Any) -> None:
    """Jobs of this check, with their pods."""
    batch.delete_collection_namespaced_job(reached.namespace, label_selector=SELECTOR, propagation_policy="Foreground")
