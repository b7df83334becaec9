"""Judge whether the cluster has what a rendered profile asks for."""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase

from sparkloom import case
from sparkloom.site import ansible, client
from sparkloom.site.checks import kubernetes


class ActionModule(ansible.Action, ActionBase):
    def work(self, args: dict[str, Any], task_vars: Any) -> dict[str, Any]:
        cluster = case.cluster(ansible.inventory(task_vars))
        facts = client.Client.at(args["kubeconfig"], args["namespace"]).facts("nvidia")
        return ansible.verdict(kubernetes.judge(cluster, args["objects"], facts), "the cluster has what it asks for")
