from __future__ import annotations

from pathlib import Path

from ansible.plugins.action import ActionBase
from ansible.utils.display import Display
from kubernetes.client import ApiException
from urllib3.exceptions import HTTPError

from sparkloom.inputs.cluster import Cluster
from sparkloom.launch import fabric
from sparkloom.site import ansible, client, nodefiles, teardown
from sparkloom.site.checks import kubernetes, report

DOCUMENTATION = r"""
module: sparkloom_teardown
short_description: Take what is ours out of the cluster, with consent
description: [Deletes only objects that carry our label; nothing by force.]
options:
  what:
    type: str
    required: true
    choices: [plan, serving, networks]
    description: [C(plan) asks for consent and says what the nodes have; the others take their part away.]
  consent:
    type: dict
    description: [Which parts may go; with plan.]
    suboptions:
      serving: {type: bool, required: true, description: [The served model.]}
      cluster: {type: bool, required: true, description: ["Multus, the networks, our namespace and our K3s."]}
      fabric: {type: bool, required: true, description: [What the rails were given.]}
      nodes: {type: bool, required: true, description: [Every other file and kernel setting.]}
      weights: {type: bool, required: true, description: [The downloaded weights.]}
"""
WORK = {"serving": teardown.serving, "networks": teardown.networks}


class ActionModule(ansible.Action, ActionBase, documentation=DOCUMENTATION):
    required_if = (("what", "plan", ("consent",)),)

    def work(self, args: ansible.Data, task_vars: ansible.Data) -> ansible.Data:
        if args["what"] == "plan":
            return self._plan(args, task_vars)
        cluster = ansible.cluster(task_vars)
        try:
            return self._take(cluster, args["what"])
        except (ApiException, HTTPError) as error:
            return {"failed": True, "msg": report.table([kubernetes.silent(cluster, error)])}

    def _plan(self, args: ansible.Data, task_vars: ansible.Data) -> ansible.Data:
        if refusal := teardown.refusal(args["consent"], [str(tag) for tag in task_vars["ansible_run_tags"]]):
            return {"failed": True, "msg": refusal}
        cluster = ansible.cluster(task_vars)
        nodes = nodefiles.every(cluster, fabric.plan(cluster))
        return {
            "functions": {name: node["functions"] for name, node in nodes.items()},
            "provider": cluster.kubernetes.provider,
            "store": cluster.model_store,
        }

    def _take(self, cluster: Cluster, what: str) -> ansible.Data:
        from kubernetes.dynamic import DynamicClient

        if cluster.kubernetes.provider == "k3s" and not Path(client.kubeconfig(cluster)).exists():
            message = "K3s is gone already, or never was: there is no access to a cluster of ours"
            return {"changed": False, "gone": [], "multus_stays": False, "msg": message}
        reached = client.of(cluster)
        taker = teardown.Taker(
            DynamicClient(reached.core.api_client), cluster.namespace, self._task.check_mode, Display().display
        )
        WORK[what](taker)
        message = ", ".join(taker.gone) or "nothing was there"
        return {"changed": bool(taker.gone), "gone": taker.gone, "multus_stays": taker.multus_stays, "msg": message}
