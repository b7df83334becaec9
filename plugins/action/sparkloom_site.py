from __future__ import annotations

from ansible.plugins.action import ActionBase

from sparkloom.site import ansible

DOCUMENTATION = r"""
module: sparkloom_site
short_description: Read the site's own choices
description: ["From the inventory's cluster.yml, with its defaults; it takes no options. The result is in C(site)."]
"""


class ActionModule(ansible.Action, ActionBase, documentation=DOCUMENTATION):
    def work(self, args: ansible.Data, task_vars: ansible.Data) -> ansible.Data:
        return {"site": ansible.cluster(task_vars).model_dump(exclude={"nodes", "servers", "fabric"})}
