from __future__ import annotations

from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

from sparkloom.onnode import smoke
from sparkloom.render import keys
from sparkloom.site import ansible, client

DOCUMENTATION = r"""
module: sparkloom_smoke
short_description: Ask a pod for one streamed answer
description: ["Through the API server, with the engine's own key; no route is needed."]
options:
  pod: {type: str, required: true, description: [Name of rank 0's pod.]}
  port: {type: int, required: true, description: [The engine's port.]}
  secret: {type: str, required: true, description: [The Secret with the engine's own key.]}
  max_tokens: {type: int, required: true, description: [Limit of the answer.]}
  timeout: {type: float, required: true, description: [Seconds that one token may take.]}
"""


class ActionModule(ansible.Action, ActionBase, documentation=DOCUMENTATION):
    def work(self, args: ansible.Data, task_vars: ansible.Data) -> ansible.Data:
        reached, show = client.of(ansible.cluster(task_vars)), Display()
        answer = smoke.ask(
            lambda: reached.connect(args["pod"], args["port"], args["timeout"]),
            lambda text: show.display(text, newline=False),
            max_tokens=args["max_tokens"],
            key=(reached.secret(args["secret"]) or {}).get(keys.BARE_FILE),
        )
        show.display("\n")
        return {"answer": answer.as_dict(), "msg": f"{answer.model}: {answer.figures()}"}
