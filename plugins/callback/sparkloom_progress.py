"""Tells how far a run is, one JSON line for each event, in the file that SPARKLOOM_PROGRESS names (`sparkloom up`)."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

from ansible.plugins.callback import CallbackBase

from sparkloom.site.ending import Ending, causes, does, words

DOCUMENTATION = """
name: sparkloom_progress
type: aggregate
short_description: how far a run is
description: [Writes nothing where SPARKLOOM_PROGRESS names no file.]
"""


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "sparkloom_progress"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self) -> None:
        super().__init__()
        self._ending = Ending()
        target = os.environ.get("SPARKLOOM_PROGRESS")
        self._stream = Path(target).open("a", encoding="utf-8", buffering=1) if target else None  # noqa: SIM115

    def _tell(self, kind: str, **what: Any) -> None:
        if self._stream:
            self._stream.write(json.dumps({"kind": kind, "at": time.time(), **what}, default=str) + "\n")

    def v2_playbook_on_play_start(self, play: Any) -> None:
        self._tell("play", name=play.get_name(), tags=list(play.tags))

    def v2_playbook_on_task_start(self, task: Any, is_conditional: bool) -> None:
        self._tell("task", name=task.get_name())

    def v2_playbook_on_handler_task_start(self, task: Any) -> None:
        self._tell("task", name=task.get_name())

    def v2_runner_on_ok(self, result: Any) -> None:
        self._ending.take(does(result.task), result.result)
        if result.result.get("changed"):
            self._tell("changed", host=result.host.get_name(), task=result.task.get_name())

    def v2_runner_on_failed(self, result: Any, ignore_errors: bool = False) -> None:
        if not ignore_errors:
            self._failed(result, words(result.result, causes(result)) or str(result.result.get("module_stderr") or ""))

    def v2_runner_on_unreachable(self, result: Any) -> None:
        self._failed(result, words(result.result, causes(result)) or "does not answer")

    def _failed(self, result: Any, said: str) -> None:
        # A task that hides its words (no_log) hides them here too: Ansible has censored the result already.
        told = said or str(result.result.get("censored") or "said nothing")
        self._tell("failed", host=result.host.get_name(), task=result.task.get_name(), said=told)

    def v2_playbook_on_stats(self, stats: Any) -> None:
        lost = {host for host in stats.processed if stats.failures.get(host) or stats.dark.get(host)}
        self._tell("end", failed=sorted(lost), hosts=sorted(stats.processed), serves=self._ending.serves())
