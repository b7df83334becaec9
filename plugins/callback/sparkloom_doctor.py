"""Keeps what the doctor's dry run says. A file named by SPARKLOOM_DOCTOR_JSON receives it when the run ends."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from ansible import context
from ansible.plugins.callback import CallbackBase

from sparkloom.site.doctor import events

DOCUMENTATION = """
name: sparkloom_doctor
type: aggregate
short_description: what a dry run of the roles said
description: ["Listens to plays with the tag doctor, and to nothing else."]
"""


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "sparkloom_doctor"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self) -> None:
        super().__init__()
        self.listening = False
        self.skipped: set[str] = set()

    def v2_playbook_on_play_start(self, play: Any) -> None:
        self.listening = events.PLAY in play.tags
        # `check_mode: true` of a play reaches its modules, but not the variable by which roles leave out what cannot
        # run dry; the doctor's first task refuses to go on should this ever miss it.
        options = play.get_variable_manager()._options_vars
        options["ansible_check_mode"] = self.listening or bool(context.CLIARGS.get("check"))

    def v2_playbook_on_handler_task_start(self, task: Any) -> None:
        self.skipped.add(task._uuid)

    def v2_playbook_on_task_start(self, task: Any, is_conditional: bool) -> None:
        if task.action == "sparkloom_doctor":
            self.skipped.add(task._uuid)

    def _keep(self, result: Any, outcome: str) -> None:
        task = result.task
        # A handler only follows from a change, the verdict from all, and a loop's end only sums its items up.
        if not self.listening or task._uuid in self.skipped or ("results" in result.result and task.loop):
            return
        # What one task says for all belongs to no node.
        host = events.CLUSTER if task.run_once or task.delegate_to else result.host.get_name()
        role = task._role.get_name() if task._role else ""
        area = Path(task.get_path().rpartition(":")[0]).stem
        events.keep(host, role, area, task.get_name(), outcome, dict(result.result))

    def v2_runner_on_ok(self, result: Any) -> None:
        self._keep(result, "ok")

    def v2_runner_item_on_ok(self, result: Any) -> None:
        self._keep(result, "ok")

    def v2_runner_on_failed(self, result: Any, ignore_errors: bool = False) -> None:
        self._keep(result, "failed")

    def v2_runner_item_on_failed(self, result: Any) -> None:
        self._keep(result, "failed")

    def v2_runner_on_unreachable(self, result: Any) -> None:
        self._keep(result, "unreachable")

    def v2_playbook_on_stats(self, stats: Any) -> None:
        if target := os.environ.get("SPARKLOOM_DOCTOR_JSON"):
            Path(target).write_text(json.dumps({"events": events.SEEN, "hosts": sorted(stats.processed)}))
