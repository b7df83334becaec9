"""Pods whose function went with its port: their sandbox is ended, and the kubelet makes it again, with new functions.

A pod gets its rails when its sandbox is made, and nothing brings back what left the bus meanwhile. The other ranks see
this one go, so the whole group stops and starts again together.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from sparkloom.onnode.functions import common
from sparkloom.onnode.functions.common import Steps, ask
from sparkloom.onnode.images.runtime import ImageError, Runtime
from sparkloom.onnode.now.labels import ENGINES, NETWORKS


def without_functions(places: Sequence[Mapping[str, Any]]) -> Steps:
    try:
        runtime = Runtime.here(places)
    except ImageError:
        return
    for pod in runtime.pods(ENGINES):
        if gone := list(_gone(runtime, pod)):
            what = f"pod {pod['metadata']['name']}: {', '.join(gone)} went with its port; the pod is made again"
            yield what, partial(common.call, *runtime.crictl, "stopp", pod["id"])


def _gone(runtime: Runtime, pod: Mapping[str, Any]) -> Iterator[str]:
    """Interfaces that its network annotation names and its namespace has not; nothing where that cannot be read."""
    wanted = json.loads(pod.get("annotations", {}).get(NETWORKS) or "[]")
    told = ask(*runtime.crictl, "inspectp", "-o", "json", pod["id"]) or {} if wanted else {}
    spaces = told.get("info", {}).get("runtimeSpec", {}).get("linux", {}).get("namespaces", [])
    path = next((space["path"] for space in spaces if space["type"] == "network" and "path" in space), "")
    links = ask("nsenter", f"--net={path}", "ip", "-json", "link", "show") if path else None
    if links:
        here = {link["ifname"] for link in links}
        yield from (each["interface"] for each in wanted if each["interface"] not in here)
