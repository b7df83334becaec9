"""Ansible's own output, with each error once: in its own words, without a second copy, a drawing of carets, or YAML.

With -v everything is Ansible's again: whole results, where an error came from, tracebacks.
"""

from __future__ import annotations

import textwrap
from typing import Any

from ansible import constants
from ansible.playbook.block import Block
from ansible.plugins.callback.default import CallbackModule as Default

from sparkloom.base.visible import but_colours, visible
from sparkloom.site import ending

DOCUMENTATION = """
name: sparkloom_output
type: stdout
short_description: Ansible's own output, with each error once and in its own words
description:
  - Ansible's default shows a failure twice, as an error with its place in a file and as a result; this shows the words.
  - A failure that a role handles is shown by its first line; the role's own words, which follow, have all of it.
  - Several hosts with the same words are shown as one.
  - Tasks that speak while they work get their heading first.
extends_documentation_fragment: [default_callback, result_format_callback]
"""

# Tasks that tell of every change while they work; of some families all do.
SPEAKS = {
    "cluster.wait", "gateway", "groups", "identity", "image", "operation", "router", "stopping", "store", "teardown",
}  # fmt: skip


def handled(task: Any) -> bool:
    """Is the task in a block whose rescue goes on with its failure?"""
    child = task
    while (parent := getattr(child, "_parent", None)) is not None:
        if isinstance(parent, Block) and parent.rescue and any(part._uuid == child._uuid for part in parent.block):
            return True
        child = parent
    return False


def _spell(display: Any) -> None:
    """All that a run shows goes through Ansible's one display, also what its workers and warnings say; colours are its
    own. Spelled there once, whatever a node, a pod or an engine put into its words."""
    if not hasattr(display, "sparkloom_shows"):
        display.sparkloom_shows = show = display.display
        display.display = lambda msg, *words, **more: show(but_colours(msg), *words, **more)


class CallbackModule(Default):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "stdout"
    CALLBACK_NAME = "sparkloom_output"

    def __init__(self) -> None:
        super().__init__()
        _spell(self._display)
        self._shown: dict[tuple[str, str], str] = {}  # task and words -> the host that said them first

    @property
    def _whole(self) -> bool:
        return bool(self._display.verbosity)

    def v2_playbook_on_task_start(self, task: Any, is_conditional: bool) -> None:
        super().v2_playbook_on_task_start(task, is_conditional)
        done = ending.does(task)
        if {done, done.partition(".")[0]} & SPEAKS and self._last_task_banner != task._uuid:
            self._print_task_banner(task)

    def v2_runner_on_failed(self, result: Any, ignore_errors: bool = False) -> None:
        if not self._short(result, "FAILED!", ignored=ignore_errors):
            super().v2_runner_on_failed(result, ignore_errors)

    def v2_runner_on_unreachable(self, result: Any) -> None:
        if not self._short(result, "UNREACHABLE!", ignored=bool(result.task.ignore_unreachable)):
            super().v2_runner_on_unreachable(result)

    def _short(self, result: Any, what: str, *, ignored: bool) -> bool:
        """Shows a failure in a line, where its words are told elsewhere."""
        said = ending.words(result.result, ending.causes(result))
        if self._whole or not said or (result.task.loop and "results" in result.result):
            return False
        host = result.host.get_name()
        first = self._shown.setdefault((result.task._uuid, said), host)
        if first != host:
            line = f"as {first}"
        elif ignored or handled(result.task):
            line = visible(said).splitlines()[0]
        else:
            return False
        if self._last_task_banner != result.task._uuid:
            self._print_task_banner(result.task)
        self._handle_warnings_and_exception(result)
        text = f"fatal: [{self.host_label(result)}]: {what} => {line}" + (" ...ignoring" if ignored else "")
        self._display.display(text, color=constants.COLOR_ERROR, stderr=self.get_option("display_failed_stderr"))
        return True

    def _handle_exception(self, result: Any, use_stderr: bool = False) -> None:
        if self._whole or not ending.shown(result):
            super()._handle_exception(result, use_stderr=use_stderr)
        else:
            result.pop("exception", None)

    def _dump_results(self, result: Any, *, serialize: bool = True, **how: Any) -> Any:
        said = "" if self._whole or not serialize else ending.words(result, ending.causes(self._current_task_result))
        if said:
            return "\n" + textwrap.indent(visible(said), " " * 4)
        return super()._dump_results(result, serialize=serialize, **how)
