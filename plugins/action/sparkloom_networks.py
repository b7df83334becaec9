"""Are all networks of the plan in the cluster, as planned? And when Multus does not come up: why not?"""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase

from sparkloom import case
from sparkloom.render.manifests import multus
from sparkloom.site import ansible, client
from sparkloom.site.checks import networks


class ActionModule(ansible.Action, ActionBase):
    def work(self, args: dict[str, Any], task_vars: Any) -> dict[str, Any]:
        cluster = case.cluster(ansible.inventory(task_vars))
        reached = client.of(cluster)
        if "waited_for" in args:
            waiting = client.Client(reached.core, multus.NAMESPACE).waiting(multus.SELECTOR)
            rows = networks.absent(cluster, waiting, args["waited_for"], int(args["seconds"]), args["why"])
            return ansible.verdict(rows, "")
        found = reached.networks()
        planned = networks.planned(cluster)
        return ansible.verdict(networks.judge(cluster, planned, found), f"{len(planned)} networks are as planned")
