from __future__ import annotations

from ansible.plugins.action import ActionBase

from sparkloom.render.manifests import page
from sparkloom.site import ansible, client, facts

DOCUMENTATION = r"""
module: sparkloom_page
short_description: Plan the page of a site
description: [The objects of the page and where to apply them; C(wanted) says whether this site has one.]
options:
  image: {type: str, required: true, description: [An image with Python.]}
"""
LISTS = ("serve", "client_keys")  # what a site with the router has, either or both


class ActionModule(ansible.Action, ActionBase, documentation=DOCUMENTATION):
    def work(self, args: ansible.Data, task_vars: ansible.Data) -> ansible.Data:
        cluster = ansible.cluster(task_vars)
        given = {
            name: ansible.plain(task_vars[name]) for name in ("serve", "profile") if task_vars.get(name) is not None
        }
        told = {"kubeconfig": client.kubeconfig(cluster), "namespace": cluster.namespace}
        if all(task_vars.get(name) is None for name in LISTS):
            return {**told, "wanted": False, "objects": []}
        known = facts.facts({**ansible.inventory(task_vars), **given})
        api = client.of(cluster).api_addresses()
        return {**told, "wanted": True, "objects": page.page(args["image"], cluster.namespace, known, api)}
