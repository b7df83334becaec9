"""Does the profile fit this site, and what speaks against it? Fails on error findings."""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase

from sparkloom import adapter, api


class ActionModule(ActionBase):
    _requires_connection = False

    def run(self, tmp: Any = None, task_vars: Any = None) -> dict[str, Any]:
        result = super().run(tmp, task_vars)
        args = self._task.args

        def work() -> dict[str, Any]:
            inventory = adapter.inventory(task_vars)
            judged = api.case(str(args["profile"]), inventory)
            if judged.errors and not adapter.true(args.get("force", False)):
                raise api.Refused(judged.errors)
            return {
                "plan": api.plan(str(args["profile"]), inventory),
                "kubeconfig": adapter.kubeconfig(judged.cluster),
                "msg": adapter.findings_text(judged.findings) or "no findings",
            }

        return result | adapter.guarded(work)
