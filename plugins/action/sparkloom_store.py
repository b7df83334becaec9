from __future__ import annotations

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
  command: {type: str, required: true, choices: [check, list, remove, begin, fetch],
            description: ["What to ask for. C(begin) is for the first node: it comes back once that knows what is to
              come, and C(fetch) then watches it; on the others C(fetch) begins too."]}
  asked: {type: dict, required: true, description: [What the program reads on its standard input.]}
  secret: {type: str, description: ["What the nodes of this run prove to know; with begin and fetch."]}
  manifests: {type: dict, description: ["Model -> digest, as the first node's begin told; with fetch."]}
  client: {type: path, description: ["The hub's client, where the hub is asked; with begin."]}
  bring: {type: bool, default: true, description: [Whether it is brought; else it runs from memory and leaves no file.]}
"""


class ActionModule(ansible.Action, ActionBase, documentation=DOCUMENTATION):
    _requires_connection = True
    required_if = (("command", "begin", ("client", "secret")), ("command", "fetch", ("secret", "manifests")))

    def work(self, args: ansible.Data, task_vars: ansible.Data) -> ansible.Data:
        node = str(task_vars["inventory_hostname"])
        remote = Remote(
            node, lambda line, data: self._low_level_execute_command(line, in_data=data), Path(args["program"])
        )

        if args["command"] == "begin" or (args["command"] == "fetch" and args["asked"]["source"]["kind"] == "peer"):
            remote.ask("start", _spec(remote, args))
        if args["command"] == "begin":
            status = follow.listed(node, lambda: dict(remote.ask("status")), Display().display)
            failed = {"failed": True, "msg": follow.ended(node, status)} if status["state"] in follow.LOST else {}
            return {"manifests": status.get("manifests", {}), **failed}
        if args["command"] == "fetch":
            return _followed(remote)
        return {"answer": remote.ask(args["command"], args["asked"], bring=args["bring"])}


def _spec(remote: Remote, args: ansible.Data) -> ansible.Data:
    """What goes to the node on standard input alone."""
    spec = {**args["asked"], "secret": args["secret"], "manifests": args["manifests"] or {}}
    if spec["source"]["kind"] == "hub":
        client = remote.bring(Path(args["client"]))
        spec = {**spec, "source": {**spec["source"], "client": client, "token": token()}}
    return spec


def _followed(remote: Remote) -> ansible.Data:
    say = Display().display
    status = follow.follow(remote.node, lambda: dict(remote.ask("status")), say)
    text = follow.ended(remote.node, status)
    done = status["state"] == "done"
    say(text) if done else None
    moved = status.get("moved", 0) > 0
    return {"failed": not done, "changed": moved, "msg": text, "commits": status.get("commits", {})}
