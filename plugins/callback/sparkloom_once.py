"""Has what tasks do imported once, before Ansible forks: else every task would import it, and all that it needs.
Jinja's filters and tests likewise, and what is there already stays in pages that parent and workers share.

Has Ansible's workers end when it is killed, and gives the run a place for its SSH connections.
"""

from __future__ import annotations

import contextlib
import gc
import os
import sys
from typing import Any

from ansible.plugins.callback import CallbackBase
from ansible.plugins.loader import filter_loader, test_loader

from sparkloom.base.errors import InputError
from sparkloom.render import pack
from sparkloom.site import connections, executor, play
from sparkloom.site.ending import does

DOCUMENTATION = """
name: sparkloom_once
type: aggregate
short_description: import what tasks of ours do once in a run, and end its SSH connections with it
description: [Prints nothing.]
"""


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "sparkloom_once"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self) -> None:
        super().__init__()
        os.register_at_fork(before=gc.freeze, after_in_parent=gc.unfreeze, after_in_child=play.end_with_parent)
        connections.kept_for_this_run()

    def v2_playbook_on_task_start(self, task: Any, is_conditional: bool) -> None:
        filter_loader.get("default")  # whoever asks for one has all of them loaded
        test_loader.get("defined")
        if (done := does(task)) != task.action:
            with contextlib.suppress(InputError):  # which its task tells
                executor.named(done)
            if "." not in done:
                pack.program("tasks")
            # Whatever talks to the cluster imports it when it is asked, a second of work.
            if "sparkloom.site.client" in sys.modules:
                import kubernetes  # noqa: F401
