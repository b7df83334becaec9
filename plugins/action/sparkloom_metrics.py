from __future__ import annotations

from ansible.plugins.action import ActionBase
from kubernetes.dynamic import DynamicClient

from sparkloom.site import ansible, client, metrics

DOCUMENTATION = r"""
module: sparkloom_metrics
short_description: Look which Prometheus and exporters there are, and plan ours
description: [What is to be applied is in C(objects) and what is to go in C(gone) afterwards.]
options:
  what:
    type: str
    required: true
    choices: [plan, forget]
    description: [C(plan) reads. C(forget) deletes.]
  enabled: {type: bool, description: ["Without it everything of ours is to go; with plan."]}
  prometheus: {type: str, choices: [auto, install, none], description: ["Who shall scrape; with plan."]}
  exporter_image: {type: str, description: ["The node-exporter's image; with plan."]}
  prometheus_image: {type: str, description: ["Prometheus' image, where ours is installed; with plan."]}
  keep_gb: {type: int, description: ["How much history ours keeps; with plan."]}
  gone: {type: list, elements: dict, description: ["Objects of an earlier choice; with forget."]}
"""
PLAN = ("enabled", "prometheus", "exporter_image", "prometheus_image", "keep_gb")


class ActionModule(ansible.Action, ActionBase, documentation=DOCUMENTATION):
    required_if = (("what", "plan", PLAN), ("what", "forget", ("gone",)))

    def work(self, args: ansible.Data, task_vars: ansible.Data) -> ansible.Data:
        cluster = ansible.cluster(task_vars)
        core = client.of(cluster).core
        dynamic = DynamicClient(core.api_client)
        if args["what"] == "forget":
            metrics.forget(dynamic, args["gone"], dry=self._task.check_mode)
            return {"changed": True, "drift": metrics.drift(args["gone"])}
        objects, told = [], "no metrics, as was asked"
        if args["enabled"]:
            images = (args["exporter_image"], args["prometheus_image"])
            found = metrics.look(core, cluster.namespace)
            objects, told = metrics.plan(cluster, found, args["prometheus"], images, args["keep_gb"])
        gone = metrics.gone(dynamic, objects, cluster.namespace)
        return {"kubeconfig": client.kubeconfig(cluster), "objects": objects, "gone": gone, "msg": told}
