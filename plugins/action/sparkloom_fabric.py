from __future__ import annotations

from ansible.plugins.action import ActionBase

from sparkloom.inputs import fleet_record
from sparkloom.launch import fabric
from sparkloom.render.rails_table import Stand
from sparkloom.site import ansible, nodefiles

DOCUMENTATION = r"""
module: sparkloom_fabric
short_description: Plan what each node has on the rails
description:
  - From the inventory's fabric.yml.
  - C(nodes) has the files and pings of each, C(rails) the names of the rails.
options:
  groups:
    type: list
    elements: dict
    default: []
    description:
      - Groups that are about to start, where the site has several, each with its C(nodes) and C(vf). Those that run
        are read from their record (build/<site>/fleet.json). In pods only a group's own addresses and the hosts' are
        heard.
"""


class ActionModule(ansible.Action, ActionBase, documentation=DOCUMENTATION):
    def work(self, args: ansible.Data, task_vars: ansible.Data) -> ansible.Data:
        cluster = ansible.cluster(task_vars)
        plan = fabric.plan(cluster)
        runs = fleet_record.read(fleet_record.path(cluster.name)).values() if cluster.several else ()
        known = [*((one.nodes, one.vf) for one in runs), *((one["nodes"], one.get("vf")) for one in args["groups"])]
        stands = [Stand(tuple(nodes), vf) for nodes, vf in known if vf is not None]
        return {"nodes": nodefiles.every(cluster, plan, stands), "rails": list(plan.rails)}
