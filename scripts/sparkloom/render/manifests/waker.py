"""The waker of groups on demand: a small pod that scales their StatefulSets, and holds requests meanwhile.

Its Python comes out of a ConfigMap, over an image that has Python and nothing of ours. It may scale the StatefulSets
that are named here and no other, reads pods and StatefulSets, and holds no Secret. A new one is there before the old
one goes; a Lease says which of both decides.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from sparkloom.inputs.cluster import Cluster
from sparkloom.launch import ports
from sparkloom.onnode.now.gather import ROUTER_PORT
from sparkloom.onnode.now.labels import ROUTER, STOPS
from sparkloom.onnode.waker import lease, server
from sparkloom.onnode.waker import main as program
from sparkloom.onnode.waker.state import GROUPS, Group
from sparkloom.render import pack, template
from sparkloom.render.manifests import access, names, pod_defaults
from sparkloom.render.manifests.page import NOBODY

NAME = "waker"
PORT = program.PORT
SELECTOR = {"app.kubernetes.io/name": NAME, **names.PART_OF}
LABELS = {**SELECTOR, "app.kubernetes.io/component": NAME}


def waker(
    image: str, cluster: Cluster, groups: Sequence[Group], api: Sequence[tuple[str, int]]
) -> list[dict[str, Any]]:
    """Objects in the order to apply them; `api`: the addresses and ports of the cluster's API."""
    packed, command = pack.program(NAME), _command(cluster.namespace)
    heads = {**names.ENGINES, names.RANK: "0"}
    made = template.objects(
        f"manifests/{NAME}",
        image=image,
        command=command,
        namespace=cluster.namespace,
        labels=LABELS,
        selector=SELECTOR,
        router=ROUTER,
        heads=heads,
        port=PORT,
        probes=ports.PROBES,
        figures=ROUTER_PORT,
        reached=[
            *access.api_server(api),
            {"to": [{"podSelector": {"matchLabels": heads}}], "ports": pod_defaults.tcp(ports.PROBES)},
            {"to": [{"podSelector": {"matchLabels": ROUTER}}], "ports": pod_defaults.tcp(ROUTER_PORT)},
            access.name_service(),
        ],
        sets=sorted(name for group in groups for name in group.sets),
        lease=lease.NAME,
        stops=STOPS,
        program=packed.base64,
        groups={GROUPS: json.dumps({"groups": [asdict(group) for group in groups]}, indent=1) + "\n"},
        annotations=names.read_at_start(json.dumps([packed.stamp, command])),
        ready=server.READY,
        live=server.LIVE,
        **pod_defaults.any_spark(cluster),
        unprivileged=pod_defaults.unprivileged(NOBODY),
        locked=pod_defaults.locked(),
    )
    return [access.priority_class(), *made]


def _command(namespace: str) -> list[str]:
    """What its pod runs; the folders are those where waker.yml mounts the ConfigMaps."""
    told = ["--groups", f"/waker/groups/{GROUPS}", "--namespace", namespace, "--port", str(PORT)]
    asked = ["--probes", str(ports.PROBES), "--figures", str(ROUTER_PORT)]
    return ["python3", "-I", "-B", f"/waker/program/{NAME}", *told, *asked]
