"""Between Ansible and the bandwidth checks: the runs to make, and afterwards the verdict and its file."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from ansible.plugins.action import ActionBase

from sparkloom import case
from sparkloom.base.repository import REPO
from sparkloom.launch import fabric
from sparkloom.site import ansible
from sparkloom.site.checks import bandwidth
from sparkloom.site.checks import bandwidth_verdict as verdict


class ActionModule(ansible.Action, ActionBase):
    def work(self, args: dict[str, Any], task_vars: Any) -> dict[str, Any]:
        cluster = case.cluster(ansible.inventory(task_vars))
        if args["what"] == "plan":
            return bandwidth.tests(cluster, fabric.plan(cluster), args["nodes"], **args["shape"])
        limits = bandwidth.thresholds(len(cluster.fabric.rails), args["thresholds"])
        left_out = list(verdict.unread(ansible.registered(task_vars, args["served"])))
        runs = verdict.without(ansible.registered(task_vars, args["runs"]), left_out)
        found = bandwidth.measures(runs, limits)
        judged = list(bandwidth.pairs(found, limits))
        when = f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"
        report = verdict.report(cluster.name, found, judged, left_out, limits, when)
        target = REPO / "build" / cluster.name / "fabric_check.json"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(json.dumps(report, indent=1) + "\n")
        findings = [*left_out, *verdict.findings(found, judged, limits)]
        passed = verdict.summary(judged) if judged else "nothing was measured"
        return {**ansible.verdict(findings, passed), "verdict": report["verdict"], "report": str(target)}
