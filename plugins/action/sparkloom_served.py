"""The cluster and the ranks as they are, beside what the profile would be rendered to now. Reads only."""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase
from kubernetes.client import ApiException
from urllib3.exceptions import HTTPError

from sparkloom import adapter, api, kube, manifests, watch
from sparkloom.checks import Row, kubernetes, serving
from sparkloom.cluster import Cluster
from sparkloom.launch import Launch
from sparkloom.manifests import names


def served(cluster: Cluster, launch: Launch, reached: kube.Cluster, objects: list[dict[str, Any]]) -> list[Row]:
    sets = [item for item in objects if item["kind"] == "StatefulSet"]
    wanted = sets[0]["metadata"]["annotations"][names.CONFIG_HASH]
    pods = reached.pods(names.selector(launch))
    ranks = [(watch.state(pod), (pod.metadata.annotations or {}).get(names.CONFIG_HASH, "")) for pod in pods]
    nodes = [rank.place.node.name for rank in launch.ranks]
    return serving.judge(launch.profile.name, nodes, wanted, ranks)


class ActionModule(ActionBase):
    _requires_connection = False

    def run(self, tmp: Any = None, task_vars: Any = None) -> dict[str, Any]:
        result = super().run(tmp, task_vars)
        args = adapter.plain(self._task.args)

        def work() -> dict[str, Any]:
            cluster = api.cluster(adapter.inventory(task_vars))
            launch = api.case(args["profile"], cluster).launch
            objects = manifests.build(launch, cluster)
            reached = kube.Cluster.of(adapter.kubeconfig(cluster), cluster.namespace)
            try:
                if args["what"] == "cluster":
                    rows = kubernetes.judge(cluster, objects, reached.facts("nvidia"))
                else:
                    rows = served(cluster, launch, reached, objects)
            except (ApiException, HTTPError) as error:
                rows = [kubernetes.silent(cluster, error)]
            return adapter.verdict(rows, "as planned")

        return result | adapter.guarded(work)
