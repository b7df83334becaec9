from __future__ import annotations

from ansible.plugins.action import ActionBase

from sparkloom import case
from sparkloom.base.repository import kept
from sparkloom.inputs.cluster import Cluster
from sparkloom.launch import patience
from sparkloom.render import manifests
from sparkloom.render.manifests import group_secret, keyring, multus, names, supervision, volumes
from sparkloom.site import ansible, client, fleet

DOCUMENTATION = r"""
module: sparkloom_render
short_description: Render the Kubernetes objects of the pods' networks or of a profile
description: [What C(sparkloom show manifests) writes is in C(objects); C(kubeconfig) says where to apply it.]
options:
  what: {type: str, required: true, choices: [network, serving], description: [What to render.]}
  image: {type: str, description: [Multus' image; with network.]}
  cni_bin: {type: str, description: [Folder of CNI's programs; with network.]}
  cni_conf: {type: str, description: [Folder of CNI's configuration; with network.]}
  profile: {type: str, description: [What is served; with serving.]}
  group:
    type: str
    default: ""
    description: ["The group of the site's list, where its plan puts it; with serving, in place of a profile."]
  seat: {type: dict, default: {}, description: [What sparkloom_fleet gave for the group; with serving.]}
  force: {type: bool, description: [Render in spite of error findings; with serving.]}
  transport: {type: str, choices: [refuse, warn], description: [What a rank does without all rails; with serving.]}
"""


class ActionModule(ansible.Action, ActionBase, documentation=DOCUMENTATION):
    required_if = (
        ("what", "network", ("image", "cni_bin", "cni_conf")),
        ("what", "serving", ("force", "transport")),
    )

    def work(self, args: ansible.Data, task_vars: ansible.Data) -> ansible.Data:
        cluster = ansible.cluster(task_vars)
        reached = {"kubeconfig": client.kubeconfig(cluster), "namespace": cluster.namespace}
        if args["what"] == "network":
            delegates = multus.multus(args["image"], args["cni_bin"], args["cni_conf"])
            given = manifests.fabric_objects(cluster)
            return {**reached, "objects": delegates, "attachments": given, "rails": len(cluster.fabric.rails)}
        rendered = self._rendered(args, task_vars, cluster)
        launch = rendered.case.launch
        return {
            **reached,
            "objects": rendered.objects,
            "manifest": manifests.to_yaml(rendered.objects),
            "build": str(kept(cluster.name)),
            "name": launch.group,  # what is kept is named by it: a profile may be given by its path
            "nodes": [rank.place.node.name for rank in launch.ranks],
            "engine_key": keyring.secret(launch),
            "told": {
                "profile": launch.profile.name,
                "model": launch.profile.profile.model.id,
                "engine": launch.engine,
                "release": launch.release,
                "image": launch.image,
            },
            "labels": names.selector(launch),
            "group_secret": group_secret.wanted(launch),
            "config_hash": rendered.digest,
            "read": supervision.read(launch, args["transport"]),
            "ranks": len(launch.ranks),
            "kernels": volumes.kernels(launch, rendered.case.cluster),
            "port": launch.port,
            "rails": len(launch.fabric),
            "wait_seconds": patience.wait_seconds(launch.profile.profile.model.measured.load_seconds),
        }

    def _rendered(self, args: ansible.Data, task_vars: ansible.Data, cluster: Cluster) -> case.Rendered:
        how = {"force": args["force"], "policy": args["transport"]}
        seat = args.get("seat") or {}
        if (group := args.get("group", "")) and not seat:
            return case.render_group(group, ansible.listed(task_vars), runs=fleet.known(cluster), **how)
        return case.render(args["profile"], cluster, seat=seat, **how)
