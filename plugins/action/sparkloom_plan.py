"""Does the profile fit this site, and what speaks against it? Fails on error findings."""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase

from sparkloom import case
from sparkloom.site import ansible, client


class ActionModule(ansible.Action, ActionBase):
    def work(self, args: dict[str, Any], task_vars: Any) -> dict[str, Any]:
        inventory = ansible.inventory(task_vars)
        judged = case.judge(str(args["profile"]), inventory)
        if judged.errors and not ansible.true(args.get("force", False)):
            raise case.Refused(judged.errors)
        return {
            "plan": case.plan(str(args["profile"]), inventory),
            "kubeconfig": client.kubeconfig(judged.cluster),
            "msg": ansible.findings_text(judged.findings) or "no findings",
        }
