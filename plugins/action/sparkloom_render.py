from __future__ import annotations

from ansible.plugins.action import ActionBase

from sparkloom.render import manifests
from sparkloom.render.manifests import multus
from sparkloom.site import ansible, client

DOCUMENTATION = r"""
module: sparkloom_render
short_description: Render the Kubernetes objects of the pods' networks
description: [C(kubeconfig) says where to apply them.]
options:
  image: {type: str, required: true, description: [Multus' image.]}
  cni_bin: {type: str, required: true, description: [Folder of CNI's programs.]}
  cni_conf: {type: str, required: true, description: [Folder of CNI's configuration.]}
"""


class ActionModule(ansible.Action, ActionBase, documentation=DOCUMENTATION):
    def work(self, args: ansible.Data, task_vars: ansible.Data) -> ansible.Data:
        cluster = ansible.cluster(task_vars)
        return {
            "kubeconfig": client.kubeconfig(cluster),
            "namespace": cluster.namespace,
            "objects": multus.multus(args["image"], args["cni_bin"], args["cni_conf"]),
            "attachments": manifests.fabric_objects(cluster),
            "rails": len(cluster.fabric.rails),
        }
