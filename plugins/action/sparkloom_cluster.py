"""Judge whether the cluster has what a rendered profile asks for."""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase

from sparkloom import adapter, api, kube
from sparkloom.checks import kubernetes


class ActionModule(adapter.Action, ActionBase):
    def work(self, args: dict[str, Any], task_vars: Any) -> dict[str, Any]:
        cluster = api.cluster(adapter.inventory(task_vars))
        facts = kube.Cluster.of(args["kubeconfig"], args["namespace"]).facts("nvidia")
        return adapter.verdict(kubernetes.judge(cluster, args["objects"], facts), "the cluster has what it asks for")
