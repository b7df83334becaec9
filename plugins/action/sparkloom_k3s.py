from __future__ import annotations

from ansible.plugins.action import ActionBase

from sparkloom.inputs.inventory import GROUP, SERVERS
from sparkloom.render.k3s.options import options
from sparkloom.site import ansible
from sparkloom.site.k3s import steps

DOCUMENTATION = r"""
module: sparkloom_k3s
short_description: Plan and decide what K3s needs on every machine
description: [The files that it writes are on the controller alone.]
options:
  do:
    type: str
    required: true
    choices: [plan, decide, secrets, kubeconfig, leftovers]
    description:
      - C(plan) says what every machine should have, C(decide) what to do there, C(leftovers) what to take away.
      - C(secrets) gives the token files of machines that join; C(kubeconfig) keeps the administrator's access here.
  options: {type: dict, description: [The role's variables; with plan and decide.]}
  plan: {type: dict, description: ["What plan gave; with decide, secrets and kubeconfig."]}
  state: {type: str, description: [Variable that every machine registered; with decide.]}
  secrets: {type: str, description: ["Variable that holds the cluster's secrets; with decide, secrets and kubeconfig."]}
  images: {type: list, elements: str, default: [], description: ["What nodes pull beside K3s' own; with decide."]}
"""


class ActionModule(ansible.Action, ActionBase, documentation=DOCUMENTATION):
    required_if = (
        ("do", "plan", ("options",)),
        ("do", "decide", ("options", "plan", "state", "secrets")),
        ("do", "secrets", ("plan", "secrets")),
        ("do", "kubeconfig", ("plan", "secrets")),
    )

    def work(self, args: ansible.Data, task_vars: ansible.Data) -> ansible.Data:
        # Named, not handed over: a task's arguments may be shown, a registered variable is not.
        secrets = ansible.plain(task_vars[args["secrets"]]) if args["secrets"] else {}
        if args["do"] == "decide":
            states = ansible.registered(task_vars, args["state"], GROUP, SERVERS)
            rows, decision = steps.decide(options(args["options"]), args["plan"], states, secrets, args["images"])
            return ansible.verdict(rows, "") | decision
        if args["do"] == "secrets":
            return steps.joining(args["plan"], secrets)
        cluster = ansible.cluster(task_vars)
        if args["do"] == "plan":
            return steps.plan(cluster, options(args["options"]))
        if args["do"] == "kubeconfig":
            return steps.keep_access(cluster, args["plan"], secrets, dry=bool(self._task.check_mode))
        return steps.leftovers(cluster)
