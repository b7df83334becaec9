from __future__ import annotations

from ansible.plugins.action import ActionBase

from sparkloom.base.finding import errors
from sparkloom.base.repository import kept
from sparkloom.site import ansible
from sparkloom.site.cabling import look

DOCUMENTATION = r"""
module: sparkloom_cabling
short_description: Judge how the nodes are cabled
description: ["What each node told, and what it was taken for, is kept in build/<site>/cabling.json."]
options:
  machine: {type: str, required: true, description: [Variable that every node registered from sparkloom_machine.]}
  links: {type: str, required: true, description: [Variable that every node registered from sparkloom_listen.]}
"""


class ActionModule(ansible.Action, ActionBase, documentation=DOCUMENTATION):
    def work(self, args: ansible.Data, task_vars: ansible.Data) -> ansible.Data:
        cluster = ansible.cluster(task_vars)
        told = {key: ansible.registered(task_vars, args[key]) for key in ("machine", "links")}
        facts = look.merge(told["machine"], told["links"])
        found = look.judge(cluster, facts)
        path = look.keep(kept(cluster.name), cluster, facts, found)
        text = f"{look.text(cluster, found)}\nwhat each node told: {path}"
        return {"failed": bool(errors(found.findings)), "msg": text, "kind": found.kind}
