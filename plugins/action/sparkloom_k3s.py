"""K3s, seen from the controller: what each machine should have, what to do there, and the administrator's access."""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase

from sparkloom import case
from sparkloom.inputs.inventory import GROUP, SERVERS
from sparkloom.render.k3s.options import options
from sparkloom.site import ansible
from sparkloom.site.k3s import steps


class ActionModule(ansible.Action, ActionBase):
    _supports_check_mode = True

    def work(self, args: dict[str, Any], task_vars: Any) -> dict[str, Any]:
        # Named, not handed over: a task's arguments may be shown, a registered variable is not.
        secrets = ansible.plain(task_vars[args["secrets"]]) if "secrets" in args else {}
        if args["do"] == "decide":
            states = ansible.registered(task_vars, args["state"], GROUP, SERVERS)
            rows, decision = steps.decide(options(args["options"]), args["plan"], states, secrets)
            return ansible.verdict(rows, "") | decision
        if args["do"] == "secrets":
            return steps.joining(args["plan"], secrets)
        cluster = case.cluster(ansible.inventory(task_vars))
        if args["do"] == "plan":
            return steps.plan(cluster, options(args["options"]))
        if args["do"] == "kubeconfig":
            return steps.keep_access(cluster, args["plan"], secrets, dry=bool(self._task.check_mode))
        return steps.leftovers(cluster)
