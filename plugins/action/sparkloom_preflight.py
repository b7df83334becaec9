"""Judge what was read of every node: one report for all of them, and the facts kept beside it."""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase

from sparkloom import case
from sparkloom.base.repository import REPO
from sparkloom.site import ansible, preflight


class ActionModule(ansible.Action, ActionBase):
    def work(self, args: dict[str, Any], task_vars: Any) -> dict[str, Any]:
        inventory = case.cluster(ansible.inventory(task_vars))
        if "probe" not in args:
            return {"reads": preflight.reads(inventory, args["settings"])}
        judged = preflight.judge(
            inventory,
            ansible.registered(task_vars, args["probe"]),
            args["settings"],
            only=[str(host) for host in task_vars["ansible_play_hosts_all"]],
        )
        kept = judged.keep(REPO / "build" / inventory.name)
        text = f"{judged.report}\nfacts of every node: {kept}"
        return {"failed": judged.failed, "msg": text, "rows": judged.rows}
