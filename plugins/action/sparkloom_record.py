"""What is served: read before a start, written after its proof or its failure. Also judges memory that must be back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible.plugins.action import ActionBase

from sparkloom import case
from sparkloom.site import ansible, client, served
from sparkloom.site.checks import memories

Args = dict[str, Any]


class ActionModule(ansible.Action, ActionBase):
    def work(self, args: Args, task_vars: Any) -> dict[str, Any]:
        work = {"read": self._read, "memory": self._memory, "good": self._good, "failed": self._failed}[args["what"]]
        return work(args, task_vars)

    def _read(self, args: Args, task_vars: Any) -> dict[str, Any]:
        record = served.read(client.Client.at(args["kubeconfig"], args["namespace"]))
        return {"record": record, "memory_gib": record.get("memory_gib", {})}

    def _memory(self, args: Args, task_vars: Any) -> dict[str, Any]:
        """Every node's memory beside what it had before the model that was stopped."""
        found = ansible.registered(task_vars, args["registered"])
        # after a failure one host asks all the others; its answers are newer than what they registered before
        found[task_vars["inventory_hostname"]] = found.pop(task_vars["inventory_hostname"], {})
        answers = [one for answer in found.values() for one in answer.get("results", [])]
        read = {one["item"]: one["memory"] for one in answers if "memory" in one}
        rows = list(memories.returned(read, args["before"], float(args["slack"])))
        return ansible.verdict(rows, "all memory is back") | {
            "now": {host: round(m["available_gib"], 1) for host, m in read.items()}
        }

    def _good(self, args: Args, task_vars: Any) -> dict[str, Any]:
        cluster = client.Client.at(args["kubeconfig"], args["namespace"])
        launch = case.judge(args["profile"], ansible.inventory(task_vars)).launch
        plan = {
            "profile": launch.profile.name,
            "model": launch.profile.profile.model.id,
            "engine": launch.engine,
            "release": launch.release,
            "image": launch.image,
            "config_hash": args["config_hash"],
            "policy": args["policy"],
            "ready_seconds": round(float(args["seconds"]), 1),
            "transport": args["transport"],
        }
        before = served.read(cluster)
        if before.get("config_hash") == plan["config_hash"] and plan["ready_seconds"] < 1:
            plan["ready_seconds"] = before.get("ready_seconds", plan["ready_seconds"])
        try:
            record = served.good(plan, cluster.pods(args["labels"]), args["memory"], before)
        except served.Mixed as problem:
            return {"failed": True, "msg": str(problem)}
        served.write(cluster, record)
        return {"record": record}

    def _failed(self, args: Args, task_vars: Any) -> dict[str, Any]:
        """Keeps every rank's log and says what they say; the record keeps the last good profile."""
        cluster = client.Client.at(args["kubeconfig"], args["namespace"])
        folder = Path(args["folder"])
        logs, found = served.keep_logs(cluster, args["labels"], folder)
        cause = served.explained(found) or str(args["cause"])
        served.write(cluster, served.failed(served.read(cluster), args["profile"], f"{args['cause']}\n{cause}"))
        where = f"{len(logs)} logs: {folder}" if logs else "no rank had a log"
        return {
            "msg": f"{args['profile']} did not start\n{args['cause']}\n{cause}\n{where}",
            "logs": [str(p) for p in logs],
        }
