from __future__ import annotations

from collections.abc import Collection

from ansible.plugins.action import ActionBase
from kubernetes.client import ApiException
from urllib3.exceptions import HTTPError

from sparkloom.base.finding import Finding
from sparkloom.inputs import serving as serving_list
from sparkloom.inputs.cluster import Cluster
from sparkloom.render.manifests import names
from sparkloom.site import ansible, client, fleet, leftovers
from sparkloom.site import ranks as every
from sparkloom.site.checks import kubernetes, serving

DOCUMENTATION = r"""
module: sparkloom_served
short_description: Judge the cluster or the ranks beside what was just rendered
description: [Reads only.]
options:
  what: {type: str, required: true, choices: [cluster, ranks], description: [What to judge.]}
  plan: {type: dict, required: true, description: [What sparkloom_render gave for the profile.]}
  dns: {type: bool, default: false, description: ["Whether the cluster's name service is judged too; with cluster."]}
"""


def ranks(
    cluster: Cluster,
    reached: client.Client,
    plan: ansible.Data,
    *,
    listed: bool = False,
    asleep: Collection[str] = (),
) -> list[Finding]:
    """`listed`: of a site that serves several, where others are beside this group and not in place of it.

    `asleep`: labels of groups that the next request wakes.
    """
    if plan["labels"][names.PROFILE] in asleep:
        return []
    by_name = {node.kubernetes_node: node.name for node in cluster.nodes}
    pods = [item["spec"]["template"] for item in plan["objects"] if item["kind"] == "StatefulSet"]
    nodes = [by_name[pod["spec"]["nodeSelector"]["kubernetes.io/hostname"]] for pod in pods]
    mine, there = plan["labels"][names.PROFILE], reached.pods(names.ENGINES)
    pods = [pod for pod in there if pod.metadata.labels.get(names.PROFILE) == mine]
    others = [] if listed else sorted({str(pod.metadata.labels.get(names.PROFILE)) for pod in there} - {mine})
    planned = [{"rank": rank, "node": node} for rank, node in enumerate(nodes)] if pods else []
    left = [f"{kind} {name}" for kind, _, name in leftovers.found(reached, {mine})] if pods and not listed else []
    applied = serving.Applied(mine, plan["config_hash"], plan["read"])
    called = {str(rank): node for rank, node in enumerate(nodes)}
    there = every.read(reached, pods, planned, names.group(mine))
    seen = [{**rank, "node": called.get(rank["rank"], rank["node"])} for rank in there]
    return serving.ranks(applied, seen, others, left)


class ActionModule(ansible.Action, ActionBase, documentation=DOCUMENTATION):
    def work(self, args: ansible.Data, task_vars: ansible.Data) -> ansible.Data:
        cluster, plan = ansible.cluster(task_vars), args["plan"]
        reached = client.of(cluster)
        try:
            if args["what"] == "cluster":
                findings = kubernetes.judge(cluster, plan["objects"], reached.facts("nvidia"))
                findings += kubernetes.names(cluster, reached.dns()) if args["dns"] else []
            else:
                listed = ansible.listed(task_vars)
                wanted = fleet.wanted(reached, serving_list.from_vars(listed, cluster)) if listed else {}
                asleep = {label for label, pods in wanted.items() if not pods}
                findings = ranks(cluster, reached, plan, listed=listed is not None, asleep=asleep)
        except (ApiException, HTTPError) as error:
            findings = [kubernetes.silent(cluster, error)]
        return ansible.verdict(findings, "as planned")
