from __future__ import annotations

import json
from datetime import UTC, datetime

from ansible.plugins.action import ActionBase

from sparkloom.base import files
from sparkloom.base.repository import kept
from sparkloom.launch import fabric
from sparkloom.site import ansible
from sparkloom.site.checks import bandwidth
from sparkloom.site.checks import bandwidth_verdict as verdict

DOCUMENTATION = r"""
module: sparkloom_bandwidth
short_description: Plan who measures whom over the rails, or judge what was measured
description: [The verdict stands in build/<site>/fabric_check.json too.]
options:
  what: {type: str, required: true, choices: [plan, judge], description: [What to do.]}
  nodes: {type: list, elements: str, description: [Who measures; with plan.]}
  shape:
    type: dict
    description: [How much each run sends; with plan.]
    suboptions:
      size: {type: int, required: true, description: [Bytes of a message.]}
      iterations: {type: int, required: true, description: [Messages of a run.]}
      queue_pairs: {type: int, required: true, description: [Queue pairs of a run.]}
  served: {type: str, description: [Variable that each listening node registered; with judge.]}
  runs: {type: str, description: [Variable that holds each node's runs; with judge.]}
  thresholds: {type: dict, description: [Where the site differs from its mode; with judge.]}
"""


class ActionModule(ansible.Action, ActionBase, documentation=DOCUMENTATION):
    required_if = (("what", "plan", ("nodes", "shape")), ("what", "judge", ("served", "runs", "thresholds")))

    def work(self, args: ansible.Data, task_vars: ansible.Data) -> ansible.Data:
        cluster = ansible.cluster(task_vars)
        if args["what"] == "plan":
            return bandwidth.tests(cluster, fabric.plan(cluster), args["nodes"], **args["shape"])
        limits = bandwidth.thresholds(cluster.fabric, args["thresholds"])
        left_out = list(verdict.unread(ansible.registered(task_vars, args["served"])))
        runs = verdict.without(ansible.registered(task_vars, args["runs"]), left_out)
        measures = bandwidth.measures(runs, limits)
        judged = list(bandwidth.pairs(measures, limits))
        when = f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"
        report = verdict.report(cluster.name, measures, judged, left_out, limits, when)
        target = files.write(kept(cluster.name) / "fabric_check.json", json.dumps(report, indent=1) + "\n")
        findings = [*left_out, *verdict.findings(measures, judged, limits)]
        passed = verdict.summary(judged) if judged else "nothing was measured"
        return {**ansible.verdict(findings, passed), "verdict": report["verdict"], "report": str(target)}
