"""The last line of a run: what changed, what serves and where; or where it failed."""

from __future__ import annotations

import time
from typing import Any

from ansible import context
from ansible.plugins.callback import CallbackBase

from sparkloom.site.doctor import events
from sparkloom.site.ending import Ending, Outcome, does

DOCUMENTATION = """
name: sparkloom_verdict
type: aggregate
short_description: the last line of a run
description:
  - Printed after the recap and after what the run cost, since Ansible calls these plugins in the order of their names.
  - Says nothing of playbooks that only look, and of the doctor, which has a verdict of its own.
"""


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "sparkloom_verdict"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self) -> None:
        super().__init__()
        self._ending, self._begun, self._silent = Ending(), time.monotonic(), False

    def v2_playbook_on_play_start(self, play: Any) -> None:
        self._silent = self._silent or events.PLAY in play.tags

    def v2_playbook_on_task_start(self, task: Any, is_conditional: bool) -> None:
        self._ending.begun = self._ending.begun or does(task) == "operation.hold"

    def v2_runner_on_ok(self, result: Any) -> None:
        self._ending.take(does(result.task), result.result)

    def v2_runner_on_failed(self, result: Any, ignore_errors: bool = False) -> None:
        if not ignore_errors:
            self._ending.failed = result.task.get_name()

    def v2_runner_on_unreachable(self, result: Any) -> None:
        if not result.task.ignore_unreachable:
            self._ending.failed = result.task.get_name()

    def v2_playbook_on_stats(self, stats: Any) -> None:
        if not stats.processed:  # Ansible passes over a play without hosts, and calls it a success
            named = ", ".join(context.CLIARGS.get("inventory") or ())
            self._display.display(
                f"\nnothing was done: no host of {named} is in a group that this playbook is about (-i, -l)"
            )
            return
        lost = {host for host in stats.processed if stats.failures.get(host) or stats.dark.get(host)}
        if self._silent or not (self._ending.begun or lost):
            return
        outcome = Outcome(
            time.monotonic() - self._begun,
            stats.changed,
            lost,
            dry=bool(context.CLIARGS.get("check")),
            serves=self._ending.serves(),
            failed=self._ending.failed,
        )
        self._display.display(f"\n{outcome.line()}")
