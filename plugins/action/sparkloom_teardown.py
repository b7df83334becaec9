from __future__ import annotations

from pathlib import Path, PurePosixPath

from ansible.plugins.action import ActionBase
from ansible.utils.display import Display
from kubernetes.client import ApiException
from urllib3.exceptions import HTTPError

from sparkloom.inputs.cluster import Cluster
from sparkloom.launch import fabric
from sparkloom.site import ansible, client, nodefiles, one_group, others, teardown
from sparkloom.site.checks import kubernetes, report
from sparkloom.site.groups import planning

DOCUMENTATION = r"""
module: sparkloom_teardown
short_description: Take what is ours out of the cluster, with consent
description: [Deletes only objects that carry our label; nothing by force.]
options:
  what:
    type: str
    required: true
    choices: [plan, others, serving, networks]
    description:
      - C(plan) asks for consent and says what the nodes have; C(others) asks for it when the cluster holds what is not
        ours. The other two take their part away.
  group: {type: str, default: "", description: [The one group that ends; empty for all. With plan.]}
  own:
    type: dict
    default: {}
    description: [What plan gave as C(own); with serving and a group.]
  others: {type: dict, description: ["What others keep, by machine; with others."]}
  agreed: {type: bool, description: [Whether that may go too; with others.]}
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


def _gone(cluster: Cluster) -> bool:
    return cluster.kubernetes.provider == "k3s" and not Path(client.kubeconfig(cluster)).exists()


class ActionModule(ansible.Action, ActionBase, documentation=DOCUMENTATION):
    required_if = (("what", "plan", ("consent",)), ("what", "others", ("others", "agreed")))

    def work(self, args: ansible.Data, task_vars: ansible.Data) -> ansible.Data:
        if args["what"] == "plan":
            return self._plan(args, task_vars)
        cluster = ansible.cluster(task_vars)
        try:
            if args["what"] == "others":
                return self._others(cluster, args)
            return self._take(cluster, args)
        except (ApiException, HTTPError) as error:
            return {"failed": True, "msg": report.table([kubernetes.silent(cluster, error)])}

    def _plan(self, args: ansible.Data, task_vars: ansible.Data) -> ansible.Data:
        group, tags = args["group"], [str(tag) for tag in task_vars["ansible_run_tags"]]
        if refusal := teardown.refusal(args["consent"], tags, group):
            return {"failed": True, "msg": refusal}
        cluster = ansible.cluster(task_vars)
        nodes = nodefiles.every(cluster, fabric.plan(cluster))
        site = {
            "functions": {name: node["functions"] for name, node in nodes.items()},
            "provider": cluster.kubernetes.provider,
            "store": cluster.model_store,
            "kernels": [str(PurePosixPath(cluster.model_store).parent / "cache")],
            "own": {},
        }
        if not group:
            return site
        try:
            return site | one_group.to_end(cluster, ansible.listed(task_vars) or cluster, group)
        except (ApiException, HTTPError) as error:
            return {"failed": True, "msg": report.table([kubernetes.silent(cluster, error)])}

    def _others(self, cluster: Cluster, args: ansible.Data) -> ansible.Data:
        found = [] if _gone(cluster) else others.in_cluster(self._taker(cluster))
        said = others.refusal(found, args["others"], consent=args["agreed"])
        return {"failed": True, "msg": said} if said else {"changed": False, "others": found}

    def _taker(self, cluster: Cluster) -> teardown.Taker:
        from kubernetes.dynamic import DynamicClient

        reached = DynamicClient(client.of(cluster).core.api_client)
        return teardown.Taker(reached, cluster.namespace, self._task.check_mode, Display().display)

    def _take(self, cluster: Cluster, args: ansible.Data) -> ansible.Data:
        if _gone(cluster):
            message = "K3s is gone already, or never was: there is no access to a cluster of ours"
            return {"changed": False, "gone": [], "multus_stays": False, "msg": message}
        taker = self._taker(cluster)
        if own := args["own"]:
            teardown.group(taker, own["labels"], {(kind, name) for kind, name in own["also"]})
        else:
            WORK[args["what"]](taker)
        if args["what"] == "serving" and not taker.dry:
            planning.keep(cluster)
        message = ", ".join(taker.gone) or "nothing was there"
        return {"changed": bool(taker.gone), "gone": taker.gone, "multus_stays": taker.multus_stays, "msg": message}
