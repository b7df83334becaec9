"""Which checkpoints a profile needs, and, once the nodes were looked at, who hands them to whom."""

from __future__ import annotations

import uuid
from typing import Any

from ansible.plugins.action import ActionBase

from sparkloom import adapter, api, profile
from sparkloom.checks import weights
from sparkloom.store import pack, plan

BUILD = adapter.REPO / ".build" / "store"


class ActionModule(adapter.Action, ActionBase):
    def work(self, args: dict[str, Any], task_vars: Any) -> dict[str, Any]:
        if args["what"] == "program":
            return {"program": str(pack.program(BUILD))}
        cluster = api.cluster(adapter.inventory(task_vars))
        loaded = profile.load(args["profile"])
        models, nodes = plan.wanted(loaded), plan.nodes(loaded, cluster)
        if args["what"] == "contents":
            found = adapter.registered(task_vars, args["answers"])
            return {"msg": plan.contents({node: found[node]["answer"] for node in found})}
        if args["what"] == "models":
            plan.removable(models, args.get("remove", []))
            program = str(pack.program(BUILD))
            return {"models": models, "nodes": nodes, "store": cluster.model_store, "program": program}
        if args["what"] == "judge":
            found = adapter.registered(task_vars, args["checks"])
            rows = weights.judge([node for node in nodes if node in adapter.asked(task_vars)], found)
            return adapter.verdict(rows, f"verified on {', '.join(nodes)}")
        settings = plan.Settings(run=uuid.uuid4().hex, **args["settings"])
        found = adapter.registered(task_vars, args["checks"])
        checks = {node: found[node]["answer"] for node in nodes}
        specs = plan.chain(cluster, models, nodes, checks, settings)
        client = str(pack.client(BUILD)) if plan.asks_hub(specs) else ""
        return {"specs": specs, "client": client, "msg": plan.told(nodes, checks, specs)}
