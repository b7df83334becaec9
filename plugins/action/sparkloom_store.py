"""Ask one node's store program: what is there, or fetch and follow until it is."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

from sparkloom.launch.downloads import token
from sparkloom.site import ansible
from sparkloom.site.store import follow
from sparkloom.site.store.remote import Remote


class ActionModule(ansible.Action, ActionBase):
    _requires_connection = True

    def work(self, args: dict[str, Any], task_vars: Any) -> dict[str, Any]:
        node = str(task_vars["inventory_hostname"])
        remote = Remote(
            node, lambda line, data: self._low_level_execute_command(line, in_data=data), Path(args["program"])
        )

        def fetch() -> dict[str, Any]:
            started, say = time.monotonic(), Display().display
            spec = args["asked"]
            if spec["source"]["kind"] == "hub":
                client = remote.bring(Path(args["client"]))
                spec = {**spec, "source": {**spec["source"], "client": client, "token": token()}}
            remote.ask("start", spec)
            status = follow.follow(node, lambda: dict(remote.ask("status")), say)
            text = follow.ended(node, status, time.monotonic() - started)
            done = status["state"] == "done"
            say(text) if done else None
            return {"failed": not done, "changed": status.get("moved", 0) > 0, "msg": text}

        if args["command"] == "fetch":
            return fetch()
        return {"answer": remote.ask(args["command"], args["asked"], bring=args.get("bring", True))}
