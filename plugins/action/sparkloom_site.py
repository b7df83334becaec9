"""What the site says of itself, with the defaults of what its cluster.yml leaves out."""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase

from sparkloom.site import ansible

DOCUMENTATION = r"""
module: sparkloom_site
short_description: Read the site's own choices
description: [From the inventory's cluster.yml; it takes no options. The result is in C(site).]
author: [Sparkloom]
"""


class ActionModule(ansible.Action, ActionBase):
    documentation = DOCUMENTATION

    def work(self, args: dict[str, Any], task_vars: Any) -> dict[str, Any]:
        return {"site": ansible.cluster(task_vars).model_dump(exclude={"nodes", "servers", "fabric"})}
