"""Who offers the nodes' GPUs, whether our device plugin is needed for it, and, when asked to wait, whether all do."""

from __future__ import annotations

import time
from typing import Any

from ansible.plugins.action import ActionBase

from sparkloom import case
from sparkloom.render.manifests import gpu
from sparkloom.site import ansible, client
from sparkloom.site.checks import gpus


class ActionModule(ansible.Action, ActionBase):
    def work(self, args: dict[str, Any], task_vars: Any) -> dict[str, Any]:
        cluster = case.cluster(ansible.inventory(task_vars))
        kubeconfig = client.kubeconfig(cluster)
        reached = client.of(cluster)
        until = time.monotonic() + float(args.get("wait_seconds", 0))
        while True:
            facts = reached.gpu_facts()
            missing = gpus.missing(cluster, facts) if "wait_seconds" in args else []
            if not missing or time.monotonic() > until:
                break
            time.sleep(2)
        judged = ansible.verdict(gpus.judge(cluster, facts, args["runtime_class"]) + missing, gpus.told(facts))
        wanted = gpu.device_plugin(cluster, args["image"], args["runtime_class"])
        return {**judged, "kubeconfig": kubeconfig, "objects": wanted if gpus.needed(cluster, facts) else []}
