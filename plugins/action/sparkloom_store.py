from __future__ import annotations

import time
from pathlib import Path

from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

from sparkloom.launch.downloads import token
from sparkloom.site import ansible
from sparkloom.site.store import follow
from sparkloom.site.store.remote import Remote

DOCUMENTATION = r"""
module: sparkloom_store
short_description: Ask one node's store of weights, or fill it
description: [Runs the store's program on the node and follows it.]
options:
  program: {type: path, required: true, description: ["The program, as sparkloom_store_plan made it."]}
  command: {type: str, required: true, choices: [check, list, remove, fetch], description: [What to ask for.]}
  asked: {type: dict, required: true, description: [What the program reads on its standard input.]}
  client: {type: path, description: ["The hub's client, where the hub is asked; with fetch."]}
  bring: {type: bool, default: true, description: [Whether it is brought; else it runs from memory and leaves no file.]}
"""


class ActionModule(ansible.Action, ActionBase, documentation=DOCUMENTATION):
    _requires_connection = True
    required_if = (("command", "fetch", ("client",)),)

    def work(self, args: ansible.Data, task_vars: ansible.Data) -> ansible.Data:
        node = str(task_vars["inventory_hostname"])
        remote = Remote(
            node, lambda line, data: self._low_level_execute_command(line, in_data=data), Path(args["program"])
        )

        def fetch() -> ansible.Data:
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
            moved = status.get("moved", 0) > 0
            return {"failed": not done, "changed": moved, "msg": text, "commits": status.get("commits", {})}

        if args["command"] == "fetch":
            return fetch()
        return {"answer": remote.ask(args["command"], args["asked"], bring=args["bring"])}
