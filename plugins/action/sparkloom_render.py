"""The Kubernetes objects of the network or of a served profile, as a list that is applied in one call."""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase

from sparkloom import case
from sparkloom.base.repository import REPO
from sparkloom.render import manifests
from sparkloom.render.manifests import multus, names
from sparkloom.site import ansible, client


class ActionModule(ansible.Action, ActionBase):
    def work(self, args: dict[str, Any], task_vars: Any) -> dict[str, Any]:
        cluster = case.cluster(ansible.inventory(task_vars))
        reached = {"kubeconfig": client.kubeconfig(cluster), "namespace": cluster.namespace}
        if args["what"] == "network":
            delegates = multus.multus(args["image"], args["cni_bin"], args["cni_conf"])
            return {**reached, "objects": delegates, "attachments": manifests.fabric_objects(cluster)}
        judged = case.judge(args["profile"], cluster)
        objects = case.render(
            args["profile"], cluster, force=ansible.true(args.get("force", False)), policy=str(args["transport"])
        )
        sets = [item for item in objects if item["kind"] == "StatefulSet"]
        return {
            **reached,
            "objects": objects,
            "manifest": manifests.to_yaml(objects),
            "build": str(REPO / "build" / cluster.name),
            "labels": names.selector(judged.launch),
            "config_hash": sets[0]["metadata"]["annotations"][names.CONFIG_HASH],
            "ranks": len(sets),
            "port": judged.launch.port,
            "rails": judged.launch.nccl_rails,
        }
