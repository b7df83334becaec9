from __future__ import annotations

from ansible.plugins.action import ActionBase

from sparkloom import case
from sparkloom.site import ansible

DOCUMENTATION = r"""
module: sparkloom_plan
short_description: Judge a profile against this site
description: [Fails on error findings; all of them are in C(findings).]
options:
  profile: {type: str, required: true, description: ["A name from model_profiles/, or a path to a file."]}
  force: {type: bool, default: false, description: [Go on in spite of error findings.]}
"""


class ActionModule(ansible.Action, ActionBase, documentation=DOCUMENTATION):
    def work(self, args: ansible.Data, task_vars: ansible.Data) -> ansible.Data:
        inventory = ansible.inventory(task_vars)
        judged = case.judge(args["profile"], inventory)
        if judged.errors and not args["force"]:
            raise case.Refused(judged.errors)
        told = ansible.findings_text(judged.findings) or "no findings"
        return {"plan": case.plan(args["profile"], inventory), "msg": told}
