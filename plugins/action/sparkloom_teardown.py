"""Consent for a teardown, and the cluster's part of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible.plugins.action import ActionBase
from ansible.utils.display import Display
from kubernetes.client import ApiException
from urllib3.exceptions import HTTPError

from sparkloom import case
from sparkloom.inputs.cluster import Cluster
from sparkloom.launch import fabric
from sparkloom.site import ansible, client, nodefiles, teardown
from sparkloom.site.checks import kubernetes, report

WORK = {"serving": teardown.serving, "networks": teardown.networks}


class ActionModule(ansible.Action, ActionBase):
    def work(self, args: dict[str, Any], task_vars: Any) -> dict[str, Any]:
        if args["what"] == "plan":
            return self._plan(args, task_vars)
        cluster = case.cluster(ansible.inventory(task_vars))
        try:
            return self._take(cluster, args["what"])
        except (ApiException, HTTPError) as error:
            return {"failed": True, "msg": report.table([kubernetes.silent(cluster, error)])}

    def _plan(self, args: dict[str, Any], task_vars: Any) -> dict[str, Any]:
        consent = {part: ansible.true(args["consent"][part]) for part in teardown.PARTS}
        if said := teardown.refusal(consent, [str(tag) for tag in task_vars["ansible_run_tags"]]):
            return {"failed": True, "msg": said}
        cluster = case.cluster(ansible.inventory(task_vars))
        nodes = nodefiles.every(cluster, fabric.plan(cluster))
        return {
            "functions": {name: node["functions"] for name, node in nodes.items()},
            "provider": cluster.kubernetes.provider,
            "store": cluster.model_store,
        }

    def _take(self, cluster: Cluster, what: str) -> dict[str, Any]:
        from kubernetes.dynamic import DynamicClient

        if cluster.kubernetes.provider == "k3s" and not Path(client.kubeconfig(cluster)).exists():
            said = "K3s is gone already, or never was: there is no access to a cluster of ours"
            return {"changed": False, "gone": [], "multus_stays": False, "msg": said}
        reached = client.of(cluster)
        taker = teardown.Taker(
            DynamicClient(reached.core.api_client), cluster.namespace, self._task.check_mode, Display().display
        )
        WORK[what](taker)
        said = ", ".join(taker.gone) or "nothing was there"
        return {"changed": bool(taker.gone), "gone": taker.gone, "multus_stays": taker.multus_stays, "msg": said}
