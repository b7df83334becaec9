"""Are all networks of the plan in the cluster, as planned? And when Multus does not come up: why not?"""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase

from sparkloom import adapter, api, kube
from sparkloom.checks import networks
from sparkloom.manifests import multus


class ActionModule(adapter.Action, ActionBase):
    def work(self, args: dict[str, Any], task_vars: Any) -> dict[str, Any]:
        cluster = api.cluster(adapter.inventory(task_vars))
        reached = kube.Cluster.of(adapter.kubeconfig(cluster), cluster.namespace)
        if "waited_for" in args:
            waiting = kube.Cluster(reached.core, multus.NAMESPACE).waiting(multus.SELECTOR)
            rows = networks.absent(cluster, waiting, args["waited_for"], int(args["seconds"]), args["why"])
            return adapter.verdict(rows, "")
        found = reached.networks()
        planned = networks.planned(cluster)
        return adapter.verdict(networks.judge(cluster, planned, found), f"{len(planned)} networks are as planned")
