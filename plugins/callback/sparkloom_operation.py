"""Notes how far a run is, for the keeper of its Lease: the play that runs, and at the end whether all went well."""

from __future__ import annotations

import json
import os
from typing import Any

from ansible.plugins.callback import CallbackBase

from sparkloom.site import lease
from sparkloom.site.ending import does

DOCUMENTATION = """
name: sparkloom_operation
type: aggregate
short_description: how far a run is, for the keeper of its Lease
description: ["A small file below .build/operation, which the keeper takes away; none of a dry run."]
"""


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "sparkloom_operation"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self) -> None:
        super().__init__()
        self._file = lease.notes(os.getpid())
        self._told: dict[str, str] = {}

    def _note(self, **what: str) -> None:
        self._told |= what
        if self._file.exists():  # made when the Lease was taken
            aside = self._file.with_suffix(".new")
            aside.write_text(json.dumps(self._told))
            aside.replace(self._file)

    def v2_playbook_on_play_start(self, play: Any) -> None:
        self._note(stage=str(play.get_name()))

    def v2_runner_on_ok(self, result: Any) -> None:
        if does(result.task) == "operation.hold":
            self._note()

    def v2_playbook_on_stats(self, stats: Any) -> None:
        self._note(ended="failed" if stats.failures or stats.dark else "done")
