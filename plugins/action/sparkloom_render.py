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
        rendered = case.render(
            args["profile"], cluster, force=ansible.true(args.get("force", False)), policy=str(args["transport"])
        )
        launch = rendered.case.launch
        return {
            **reached,
            "objects": rendered.objects,
            "manifest": manifests.to_yaml(rendered.objects),
            "build": str(REPO / "build" / cluster.name),
            "labels": names.selector(launch),
            "config_hash": rendered.digest,
            "ranks": len(launch.ranks),
            "port": launch.port,
            "rails": len(launch.fabric),
        }
