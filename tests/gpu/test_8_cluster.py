"""Kubernetes with containerd on this machine: what `render` wrote, applied as it is, serves on the GPU."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest
import yaml

from testbed.beds.gpu import cluster, models, place
from testbed.beds.gpu.pod import API, KEY, SECRETS, rendered
from testbed.standins.hub import tiny

SERVES = "] serving: "  # of the supervisor
GUARD = "import sys; from sparkloom.onnode.memory_guard import main; sys.exit(main(sys.argv[1:]))"
PROFILE, NAMESPACE = "gpu-recites--sglang-1node", "sparkloom"


def ready(pod: dict[str, Any]) -> bool:
    conditions = pod["status"].get("conditions", [])
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def answer(address: str) -> str:
    body = {"model": "tiny", "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 40, "temperature": 0}
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {KEY}"}
    url = f"http://{address}:{API}/v1/chat/completions"
    with urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), headers), timeout=60) as said:
        return str(json.loads(said.read())["choices"][0]["message"]["content"])


def guarded(one: cluster.Cluster) -> dict[str, Any]:
    """The node's memory guard, told that any memory is too little: it ends the engine, and the pod has it back."""
    (log,) = Path("/var/log/pods").glob(f"{NAMESPACE}_*/*/0.log")
    settings = place.OUT / "memory-guard.json"
    settings.write_text(json.dumps({"floor_gib": 1e6, "namespace": NAMESPACE, "container": log.parent.name}))
    begun, served = time.monotonic(), log.read_text().count(SERVES)
    paths = {**os.environ, "PYTHONPATH": str(place.PRODUCT / "scripts")}
    guard = subprocess.Popen([sys.executable, "-c", GUARD, str(settings)], env=paths)
    try:
        one.until("kubelet", lambda: "the engine was ended by the node's memory guard" in log.read_text(), 30)
        told = {"named_s": round(time.monotonic() - begun, 1)}
    finally:
        guard.kill()
    one.until("kubelet", lambda: log.read_text().count(SERVES) > served, 120)
    lines = [line for line in log.read_text().splitlines() if "memory guard" in line]
    return {**told, "back_s": round(time.monotonic() - begun, 1), "cause": lines[0].partition(" F ")[2]}


@pytest.mark.takes(200)
def test_kubernetes_runs_the_device_plugin_and_the_rank_as_rendered(runtime: str, nets: None) -> None:
    if why := cluster.absent():
        pytest.skip(why)
    models.provide(tiny.RECITES)
    place.done(["cp", place.BIN / "nvidia-device-plugin", "/usr/bin/nvidia-device-plugin"])
    plugin = list(yaml.safe_load_all((place.RENDERED / "device-plugin.yaml").read_text()))
    objects = rendered(PROFILE)
    (engine,) = [one for one in objects if one["kind"] == "StatefulSet"]
    images = [one["spec"]["template"]["spec"]["containers"][0]["image"] for one in (engine, plugin[0])]
    with cluster.Cluster(*images) as one:
        node = one.until("kubelet", lambda: any(
            told["type"] == "Ready" and told["status"] == "True" for told in one.node().get("conditions", [])
        ), 60)  # fmt: skip
        place.tell("cluster", {"node_s": round(node, 1), "versions": one.node()["nodeInfo"]})
        one.apply([cluster.RUNTIME_CLASS, *plugin])
        offered = one.until("kubelet", lambda: one.node().get("allocatable", {}).get("nvidia.com/gpu", "0") != "0", 60)
        place.tell("cluster", {"offered_s": round(offered, 1), "offered": one.node()["allocatable"]["nvidia.com/gpu"]})
        one.apply(objects[:1])
        one.apply([cluster.secret("engine-own-key", NAMESPACE, SECRETS), *objects[1:]])
        serving = one.until("kubelet", lambda: any(ready(pod) for pod in one.pods(NAMESPACE)), 240)
        (pod,) = one.pods(NAMESPACE)
        said = answer(pod["status"]["podIP"])
        place.tell("cluster", {
            "ready_s": round(serving, 1), "answer": said, "objects": len(objects) + len(plugin) + 2,
            "restarts": pod["status"]["containerStatuses"][0]["restartCount"], "node": pod["spec"]["nodeName"],
        })  # fmt: skip
        assert said.strip()
        place.tell("cluster", {"guard": guarded(one)})
        one.ask("DELETE", f"/apis/apps/v1/namespaces/{NAMESPACE}/statefulsets/{engine['metadata']['name']}")
        gone = one.until("kubelet", lambda: not one.pods(NAMESPACE), 90)
        place.tell("cluster", {"gone_s": round(gone, 1)})
