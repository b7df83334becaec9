from __future__ import annotations

from ansible.plugins.action import ActionBase
from kubernetes.client import ApiException
from urllib3.exceptions import HTTPError

from sparkloom.base.finding import Finding
from sparkloom.inputs.cluster import Cluster
from sparkloom.render.manifests import names
from sparkloom.site import ansible, client, watch
from sparkloom.site.checks import kubernetes, serving

DOCUMENTATION = r"""
module: sparkloom_served
short_description: Judge the cluster or the ranks beside what was just rendered
description: [Reads only.]
options:
  what: {type: str, required: true, choices: [cluster, ranks], description: [What to judge.]}
  plan: {type: dict, required: true, description: [What sparkloom_render gave for the profile.]}
"""


def ranks(cluster: Cluster, reached: client.Client, plan: ansible.Data) -> list[Finding]:
    by_name = {node.kubernetes_node: node.name for node in cluster.nodes}
    pods = [item["spec"]["template"] for item in plan["objects"] if item["kind"] == "StatefulSet"]
    nodes = [by_name[pod["spec"]["nodeSelector"]["kubernetes.io/hostname"]] for pod in pods]
    running = [
        (watch.state(pod), (pod.metadata.annotations or {}).get(names.CONFIG_HASH, ""))
        for pod in reached.pods(plan["labels"])
    ]
    return serving.ranks(plan["labels"][names.PROFILE], nodes, plan["config_hash"], running)


class ActionModule(ansible.Action, ActionBase, documentation=DOCUMENTATION):
    def work(self, args: ansible.Data, task_vars: ansible.Data) -> ansible.Data:
        cluster, plan = ansible.cluster(task_vars), args["plan"]
        reached = client.of(cluster)
        try:
            if args["what"] == "cluster":
                findings = kubernetes.judge(cluster, plan["objects"], reached.facts("nvidia"))
            else:
                findings = ranks(cluster, reached, plan)
        except (ApiException, HTTPError) as error:
            findings = [kubernetes.silent(cluster, error)]
        return ansible.verdict(findings, "as planned")
