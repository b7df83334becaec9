from __future__ import annotations

from ansible.plugins.action import ActionBase

from sparkloom.onnode import loglines
from sparkloom.onnode.nccl import log as nccl_log
from sparkloom.site import ansible, client

DOCUMENTATION = r"""
module: sparkloom_transport
short_description: Judge which transport NCCL took
description: [Reads the log of every rank's pod. Changes nothing.]
options:
  pods: {type: dict, required: true, description: [Name of the pod of each rank.]}
  rails: {type: int, required: true, description: [How many rails were planned.]}
  policy: {type: str, required: true, choices: [refuse, warn], description: [What to do when not all were taken.]}
"""
LOG_BYTES = 4_000_000  # NCCL speaks while the ranks meet, long before this


class ActionModule(ansible.Action, ActionBase, documentation=DOCUMENTATION):
    def work(self, args: ansible.Data, task_vars: ansible.Data) -> ansible.Data:
        reached = client.of(ansible.cluster(task_vars))
        pods = [args["pods"][rank] for rank in sorted(args["pods"], key=int)]
        text = "\n".join(loglines.last_epoch(reached.head(pod, LOG_BYTES)) for pod in pods)
        report = nccl_log.read_text(text, rails=args["rails"], nodes=len(pods))
        refused = not report.good and args["policy"] == "refuse"
        return {"failed": refused, "transport": report.as_dict(), "msg": f"{report.verdict}: {report.why}"}
