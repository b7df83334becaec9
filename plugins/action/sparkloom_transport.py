"""Which transport NCCL really took, read from every rank's own log: the proof that the rails are used."""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase

from sparkloom.onnode import loglines
from sparkloom.onnode.nccl import log as nccl_log
from sparkloom.site import ansible, client

LOG_BYTES = 4_000_000  # NCCL speaks while the ranks meet, long before this


class ActionModule(ansible.Action, ActionBase):
    def work(self, args: dict[str, Any], task_vars: Any) -> dict[str, Any]:
        cluster = client.Client.at(args["kubeconfig"], args["namespace"])
        pods = [args["pods"][rank] for rank in sorted(args["pods"], key=int)]
        text = "\n".join(loglines.last_epoch(cluster.head(pod, LOG_BYTES)) for pod in pods)
        report = nccl_log.read_text(text, rails=int(args["rails"]), nodes=len(pods))
        refused = not report.good and args["policy"] == "refuse"
        return {"failed": refused, "transport": report.as_dict(), "msg": f"{report.verdict}: {report.why}"}
