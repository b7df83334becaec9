"""Follows a run: its last line says what changed, what serves and where, or where it failed.

`sparkloom up` reads how far it is from the file that SPARKLOOM_PROGRESS names, one JSON line for each event. Who
renews the site's Lease reads from a file below .build/operation which play runs, and at the end whether all went well.
"""

from __future__ import annotations

import json
import os
import time
from typing import Any

from ansible import context
from ansible.plugins.callback import CallbackBase

from sparkloom.site import lease, up
from sparkloom.site.doctor import events
from sparkloom.site.ending import Ending, causes, does, outcome, words

DOCUMENTATION = """
name: sparkloom_verdict
type: aggregate
short_description: the last line of a run, and how far it is
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
        self._screen = ""  # of preflight's report, which stays in sight where it is the end of the run
        self._notes, self._noted = lease.notes(os.getpid()), {}

    def _note(self, **what: str) -> None:
        self._noted |= what
        if self._notes.exists():  # made when the Lease was taken
            aside = self._notes.with_suffix(".new")
            aside.write_text(json.dumps(self._noted))
            aside.replace(self._notes)

    def v2_playbook_on_play_start(self, play: Any) -> None:
        self._silent = self._silent or events.PLAY in play.tags
        self._screen = ""
        self._note(stage=str(play.get_name()))
        up.tell("play", name=play.get_name(), tags=list(play.tags))

    def v2_playbook_on_task_start(self, task: Any, is_conditional: bool) -> None:
        self._ending.begun = self._ending.begun or does(task) == "operation.hold"
        up.tell("task", name=task.get_name(), does=does(task))

    def v2_playbook_on_handler_task_start(self, task: Any) -> None:
        up.tell("task", name=task.get_name())

    def v2_runner_on_ok(self, result: Any) -> None:
        done = does(result.task)
        self._screen = result.result.get("screen", self._screen)
        self._ending.take(done, result.result)
        if done == "operation.hold":
            self._note()
        if result.result.get("changed"):
            up.tell("changed", host=result.host.get_name(), task=result.task.get_name())

    def v2_runner_on_failed(self, result: Any, ignore_errors: bool = False) -> None:
        self._screen = result.result.get("screen", self._screen)
        if not ignore_errors:
            self._ending.failed = result.task.get_name()
            self._failed(result, words(result.result, causes(result)) or str(result.result.get("module_stderr") or ""))

    def v2_runner_on_unreachable(self, result: Any) -> None:
        if not result.task.ignore_unreachable:
            self._ending.failed = result.task.get_name()
        self._failed(result, words(result.result, causes(result)) or "does not answer")

    def _failed(self, result: Any, said: str) -> None:
        # A task that hides its words (no_log) hides them here too: Ansible has censored the result already.
        told = said or str(result.result.get("censored") or "said nothing")
        up.tell("failed", host=result.host.get_name(), task=result.task.get_name(), said=told)

    def v2_playbook_on_stats(self, stats: Any) -> None:
        lost = {host for host in stats.processed if stats.failures.get(host) or stats.dark.get(host)}
        serves = self._ending.serves()
        self._note(ended="failed" if stats.failures or stats.dark else "done")
        measured = self._ending.measured
        up.tell("end", failed=sorted(lost), hosts=sorted(stats.processed), serves=serves, measured=measured)
        if not stats.processed:  # Ansible passes over a play without hosts, and calls it a success
            named = ", ".join(context.CLIARGS.get("inventory") or ())
            self._display.display(
                f"\nnothing was done: no host of {named} is in a group that this playbook is about (-i, -l)"
            )
        elif self._screen and not self._silent:
            self._display.display(f"\n{self._screen}")
        elif not self._silent and (self._ending.begun or lost):
            passed, dry = time.monotonic() - self._begun, bool(context.CLIARGS.get("check"))
            line = outcome(passed, stats.changed, lost, dry=dry, serves=serves, failed=self._ending.failed)
            self._display.display(f"\n{line}")
