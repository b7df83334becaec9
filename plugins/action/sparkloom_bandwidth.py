"""Between Ansible and the bandwidth checks: the runs to make, and afterwards the verdict and its file."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from ansible.plugins.action import ActionBase

from sparkloom import adapter, api, fabric
from sparkloom.checks import bandwidth
from sparkloom.checks import bandwidth_verdict as verdict


class ActionModule(ActionBase):
    _requires_connection = False

    def run(self, tmp: Any = None, task_vars: Any = None) -> dict[str, Any]:
        result = super().run(tmp, task_vars)
        args = adapter.plain(self._task.args)

        def plan() -> dict[str, Any]:
            cluster = api.cluster(adapter.inventory(task_vars))
            return bandwidth.tests(cluster, fabric.plan(cluster), args["nodes"], **args["shape"])

        def judge() -> dict[str, Any]:
            cluster = api.cluster(adapter.inventory(task_vars))
            limits = bandwidth.thresholds(len(cluster.fabric.rails), args["thresholds"])
            left_out = verdict.unread(adapter.registered(task_vars, args["served"]))
            apart = {row.node for row in left_out}
            runs = adapter.registered(task_vars, args["runs"])
            taken = {host: [one for one in found if not apart & {one["client"], one["server"]}]
                     for host, found in runs.items()}  # fmt: skip
            found = bandwidth.measures(taken, limits)
            judged = list(bandwidth.pairs(found, limits))
            report = verdict.report(
                cluster.name, found, judged, left_out, limits, f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"
            )
            target = adapter.REPO / "build" / cluster.name / "fabric_check.json"
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(json.dumps(report, indent=1) + "\n")
            rows = [*left_out, *verdict.rows(found, judged, limits)]
            passed = verdict.summary(judged) if judged else "nothing was measured"
            return {**adapter.verdict(rows, passed), "verdict": report["verdict"], "report": str(target)}

        return result | adapter.guarded(plan if args["what"] == "plan" else judge)
