from __future__ import annotations

from ansible.plugins.action import ActionBase

from sparkloom.site import ansible, doctor
from sparkloom.site.doctor import events

DOCUMENTATION = r"""
module: sparkloom_doctor
short_description: Say what is not as planned
description: [Judges what the callback of this name heard of this run; it takes no options.]
"""


class ActionModule(ansible.Action, ActionBase, documentation=DOCUMENTATION):
    def work(self, args: ansible.Data, task_vars: ansible.Data) -> ansible.Data:
        judged = doctor.report(events.SEEN, list(task_vars["ansible_play_hosts_all"]))
        return {"failed": not judged.good, "msg": judged.text(), "report": judged.as_dict()}
