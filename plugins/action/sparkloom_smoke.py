"""One streamed answer from rank 0: the proof that a served model serves."""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

from sparkloom.base.repository import place
from sparkloom.onnode import smoke
from sparkloom.render import keys
from sparkloom.site import ansible, client


class ActionModule(ansible.Action, ActionBase):
    def work(self, args: dict[str, Any], task_vars: Any) -> dict[str, Any]:
        cluster = client.Client.at(args["kubeconfig"], args["namespace"])

        def connect() -> Any:
            return cluster.connect(args["pod"], int(args["port"]), float(args["timeout"]))

        show = Display()
        key = keys.read(place(args["key_file"])) or None
        answer = smoke.ask(
            connect, lambda text: show.display(text, newline=False), max_tokens=int(args["max_tokens"]), key=key
        )
        show.display("\n")
        return {"answer": answer.as_dict(), "msg": f"{answer.model}: {answer.figures()}"}
