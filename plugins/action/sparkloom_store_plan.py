"""Which checkpoints a profile needs, and, once the nodes were looked at, who hands them to whom."""

from __future__ import annotations

import uuid
from typing import Any

from ansible.plugins.action import ActionBase

from sparkloom import case
from sparkloom.base.repository import REPO
from sparkloom.inputs import profile
from sparkloom.launch import downloads
from sparkloom.render import pack
from sparkloom.site import ansible
from sparkloom.site.checks import serving

BUILD = REPO / ".build" / "store"


class ActionModule(ansible.Action, ActionBase):
    def work(self, args: dict[str, Any], task_vars: Any) -> dict[str, Any]:
        if args["what"] == "program":
            return {"program": str(pack.program("weights").keep(BUILD))}
        cluster = case.cluster(ansible.inventory(task_vars))
        loaded = profile.load(args["profile"])
        models, nodes = downloads.wanted(loaded), downloads.nodes(loaded, cluster)
        if args["what"] == "contents":
            found = ansible.registered(task_vars, args["answers"])
            return {"msg": downloads.contents({node: found[node]["answer"] for node in found})}
        if args["what"] == "models":
            downloads.removable(models, args.get("remove", []))
            program = str(pack.program("weights").keep(BUILD))
            return {"models": models, "nodes": nodes, "store": cluster.model_store, "program": program}
        if args["what"] == "judge":
            found = ansible.registered(task_vars, args["checks"])
            findings = serving.weights([node for node in nodes if node in ansible.asked(task_vars)], found)
            return ansible.verdict(list(findings), f"verified on {', '.join(nodes)}")
        settings = downloads.Settings(run=uuid.uuid4().hex, **args["settings"])
        found = ansible.registered(task_vars, args["checks"])
        checks = {node: found[node]["answer"] for node in nodes}
        specs = downloads.chain(cluster, models, nodes, checks, settings)
        client = str(pack.client(BUILD)) if downloads.asks_hub(specs) else ""
        return {"specs": specs, "client": client, "msg": downloads.told(nodes, checks, specs)}
