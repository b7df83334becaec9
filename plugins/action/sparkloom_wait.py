"""Wait until every rank serves; one line for every change while it waits."""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

from sparkloom.site import ansible, client, watch


class ActionModule(ansible.Action, ActionBase):
    def work(self, args: dict[str, Any], task_vars: Any) -> dict[str, Any]:
        group = watch.ServedGroup(
            labels=args["labels"],
            config_hash=args["config_hash"],
            ranks=int(args["ranks"]),
            timeout=float(args["timeout"]),
            restarts=int(args["restarts"]),
        )
        outcome = watch.wait(client.Client.at(args["kubeconfig"], args["namespace"]), group, Display().display)
        pods = {state.rank: state.pod for state in outcome.states}
        return {"failed": not outcome.ready, "msg": outcome.message, "seconds": outcome.seconds, "pods": pods}
