from __future__ import annotations

from pathlib import Path

from ansible.plugins.action import ActionBase
from kubernetes.client import ApiException
from urllib3.exceptions import HTTPError

from sparkloom.render.manifests import names
from sparkloom.site import ansible, client, leftovers, served
from sparkloom.site.checks import memories

DOCUMENTATION = r"""
module: sparkloom_record
short_description: Read and write the record of what is served
description: [A ConfigMap beside the pods.]
options:
  what:
    type: str
    required: true
    choices: [read, memory, good, failed]
    description:
      - C(read) before a start; C(good) writes it after a proof, C(failed) after a failure, whose logs it keeps.
      - C(good) also takes away what groups left in the cluster that are not to be there.
      - C(memory) judges whether every node has its memory again.
  registered: {type: str, description: [Variable that the nodes registered from sparkloom_memory; with memory.]}
  before: {type: dict, description: [GiB that each node had before the load; with memory.]}
  slack: {type: float, description: [GiB that may be gone for other reasons; with memory.]}
  name: {type: str, default: served, description: [The ConfigMap with the record of this group.]}
  profile: {type: str, description: [What was started; with failed.]}
  told: {type: dict, description: [What sparkloom_render told of it; with good.]}
  keep: {type: list, elements: str, default: [], description: [Labels of the other groups that stay; with good.]}
  labels: {type: dict, description: [Whose pods; with good and failed.]}
  config_hash: {type: str, description: [Of what was rendered; with good.]}
  seconds: {type: float, description: [How long the start took; with good.]}
  transport: {type: str, description: [What sparkloom_transport said; with good.]}
  policy: {type: str, choices: [refuse, warn], description: [Which transport was allowed; with good.]}
  memory: {type: dict, description: [GiB that each node had before this load; with good.]}
  cause: {type: str, description: [What failed; with failed.]}
  folder: {type: path, description: [Where the ranks' logs are kept; with failed.]}
"""


class ActionModule(ansible.Action, ActionBase, documentation=DOCUMENTATION):
    required_if = (
        ("what", "memory", ("registered", "before", "slack")),
        ("what", "good", ("told", "labels", "config_hash", "seconds", "transport", "policy", "memory")),
        ("what", "failed", ("profile", "labels", "cause", "folder")),
    )

    def work(self, args: ansible.Data, task_vars: ansible.Data) -> ansible.Data:
        work = {"read": self._read, "memory": self._memory, "good": self._good, "failed": self._failed}
        return work[args["what"]](args, task_vars)

    def _read(self, args: ansible.Data, task_vars: ansible.Data) -> ansible.Data:
        reached = client.of(ansible.cluster(task_vars))
        return {"record": served.read(reached, args["name"]), "memory_gib": served.memory(reached)}

    def _memory(self, args: ansible.Data, task_vars: ansible.Data) -> ansible.Data:
        """Every node's memory beside what it had before the model that was stopped."""
        registered = ansible.registered(task_vars, args["registered"])
        # after a failure one host asks all the others; its answers are newer than what they registered before
        registered[task_vars["inventory_hostname"]] = registered.pop(task_vars["inventory_hostname"], {})
        answers = [answer for loop in registered.values() for answer in loop.get("results", [])]
        read = {answer["item"]: answer["memory"] for answer in answers if "memory" in answer}
        rows = list(memories.returned(read, args["before"], args["slack"]))
        return ansible.verdict(rows, "all memory is back") | {
            "now": {host: round(m["available_gib"], 1) for host, m in read.items()}
        }

    def _good(self, args: ansible.Data, task_vars: ansible.Data) -> ansible.Data:
        cluster = ansible.cluster(task_vars)
        plan = {
            **args["told"],
            "config_hash": args["config_hash"],
            "policy": args["policy"],
            "ready_seconds": round(args["seconds"], 1),
            "transport": args["transport"],
        }
        reached = client.of(cluster)
        name = args.get("name", served.NAME)
        before = served.read(reached, name)
        if before.get("config_hash") == plan["config_hash"] and plan["ready_seconds"] < 1:
            plan["ready_seconds"] = before.get("ready_seconds", plan["ready_seconds"])
        try:
            record = served.good(plan, reached.pods(args["labels"]), args["memory"], before)
        except served.Mixed as problem:
            return {"failed": True, "msg": str(problem)}
        served.write(reached, record, name, args["labels"])
        try:
            gone = leftovers.take(reached, {args["labels"][names.PROFILE], *args.get("keep", ())})
        except (ApiException, HTTPError):  # what serves was proved; the doctor names what is still there
            gone = []
        mine, named = args["labels"][names.PROFILE], args["told"]["profile"]
        mine = named if names.marked(named) == mine else mine
        return {"record": record, "changed": bool(gone), "gone": gone, "group": mine}

    def _failed(self, args: ansible.Data, task_vars: ansible.Data) -> ansible.Data:
        """Keeps every rank's log and says what they say; the record keeps the last good profile."""
        reached, folder = client.of(ansible.cluster(task_vars)), Path(args["folder"])
        logs, diagnosis = served.keep_logs(reached, args["labels"], folder)
        cause = served.explained(diagnosis) or args["cause"]
        name = args["name"]
        record = served.failed(served.read(reached, name), args["profile"], f"{args['cause']}\n{cause}")
        served.write(reached, record, name, args["labels"])
        where = f"{len(logs)} logs: {folder}" if logs else "no rank had a log"
        return {
            "msg": f"{args['profile']} did not start\n{args['cause']}\n{cause}\n{where}",
            "logs": [str(p) for p in logs],
        }
