"""What a run cost: remote module runs per host, and the five tasks that took longest.

Runs times hosts does not depend on the machine, so it is the number to watch when a role grows. A file named by
SPARKLOOM_TIMES_JSON receives the same as JSON.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from pathlib import Path
from typing import Any

from ansible.plugins.callback import CallbackBase

from sparkloom.site.ending import does

DOCUMENTATION = """
name: sparkloom_times
type: aggregate
short_description: module runs per host and the slowest tasks
description: [Prints what a run cost when it ends.]
"""

# Actions that finish on the controller: nothing is sent to the host.
LOCAL = {
    "add_host", "assert", "debug", "fail", "group_by", "import_role", "import_tasks", "include_role", "include_tasks",
    "include_vars", "meta", "pause", "set_fact", "set_stats", "sparkloom", "validate_argument_spec",
}  # fmt: skip


def is_remote(action: str, delegate_to: str | None) -> bool:
    """Whether a task sends a module to its host."""
    name = action.removeprefix("ansible.builtin.").removeprefix("ansible.legacy.")
    return name not in LOCAL and delegate_to not in ("localhost", "127.0.0.1")


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "sparkloom_times"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self) -> None:
        super().__init__()
        self.runs: Counter[str] = Counter()
        self.seconds: Counter[str] = Counter()
        self.begun = time.monotonic()
        self.current: tuple[str, float] | None = None

    def _close(self) -> None:
        if self.current:
            name, since = self.current
            self.seconds[name] += time.monotonic() - since
            self.current = None

    def v2_playbook_on_task_start(self, task: Any, is_conditional: bool) -> None:
        self._close()
        self.current = (task.get_name(), time.monotonic())

    def v2_playbook_on_handler_task_start(self, task: Any) -> None:
        self.v2_playbook_on_task_start(task, False)

    def _count(self, result: Any) -> None:
        task = result.task
        followed = task.action == "sparkloom_node" and "." in does(task)  # by a program that is there
        if is_remote(task.action, task.delegate_to) and not followed:
            self.runs[result.host.get_name()] += 1

    def _count_unless_loop(self, result: Any, ignore_errors: bool = False) -> None:
        if "results" not in result.result or not result.task.loop:
            self._count(result)

    v2_runner_item_on_ok = v2_runner_item_on_failed = v2_runner_retry = _count
    v2_runner_on_ok = v2_runner_on_failed = _count_unless_loop

    def v2_playbook_on_stats(self, stats: Any) -> None:
        self._close()
        total = time.monotonic() - self.begun
        slowest = self.seconds.most_common(5)
        runs = {host: self.runs[host] for host in sorted(stats.processed) if host != "localhost"}
        self._display.display("\nmodule runs: " + ("  ".join(f"{host} {n}" for host, n in runs.items()) or "none"))
        self._display.display(f"time: {total:.1f} s; longest tasks:")
        for name, seconds in slowest:
            self._display.display(f"  {seconds:6.1f} s  {name}")
        if target := os.environ.get("SPARKLOOM_TIMES_JSON"):
            report = {"seconds": total, "module_runs": runs, "slowest": [{"task": n, "seconds": s} for n, s in slowest]}
            Path(target).write_text(json.dumps(report, indent=2) + "\n")
