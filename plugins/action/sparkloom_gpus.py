from __future__ import annotations

import time

from ansible.plugins.action import ActionBase

from sparkloom.render.manifests import gpu
from sparkloom.site import ansible, client
from sparkloom.site.checks import gpus

DOCUMENTATION = r"""
module: sparkloom_gpus
short_description: Look who offers the nodes' GPUs, and plan the device plugin where nobody does
description: [Reads only; what is to be applied is in C(objects).]
options:
  image: {type: str, required: true, description: [The device plugin's image.]}
  runtime_class: {type: str, required: true, description: [The RuntimeClass of pods with a GPU.]}
  wait_seconds: {type: float, description: ["Seconds to wait until every node offers its GPU, or fail."]}
"""


class ActionModule(ansible.Action, ActionBase, documentation=DOCUMENTATION):
    def work(self, args: ansible.Data, task_vars: ansible.Data) -> ansible.Data:
        cluster, seconds = ansible.cluster(task_vars), args["wait_seconds"]
        reached = client.of(cluster)
        until = time.monotonic() + (seconds or 0)
        while True:
            facts = reached.gpu_facts()
            missing = gpus.missing(cluster, facts) if seconds is not None else []
            if not missing or time.monotonic() > until:
                break
            time.sleep(2)
        judged = ansible.verdict(gpus.judge(cluster, facts, args["runtime_class"]) + missing, gpus.told(facts))
        wanted = gpu.device_plugin(cluster, args["image"], args["runtime_class"])
        objects = wanted if gpus.needed(cluster, facts) else []
        return {**judged, "kubeconfig": client.kubeconfig(cluster), "objects": objects}
