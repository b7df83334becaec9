"""Does the profile fit this site, and what speaks against it? Fails on error findings."""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase

from sparkloom import adapter, api


class ActionModule(adapter.Action, ActionBase):
    def work(self, args: dict[str, Any], task_vars: Any) -> dict[str, Any]:
        inventory = adapter.inventory(task_vars)
        judged = api.case(str(args["profile"]), inventory)
        if judged.errors and not adapter.true(args.get("force", False)):
            raise api.Refused(judged.errors)
        return {
            "plan": api.plan(str(args["profile"]), inventory),
            "kubeconfig": adapter.kubeconfig(judged.cluster),
            "msg": adapter.findings_text(judged.findings) or "no findings",
        }
