"""Has each action read once, before Ansible forks: else every task would read its own, and all that it imports."""

from __future__ import annotations

import sys
from typing import Any

from ansible.plugins.callback import CallbackBase
from ansible.plugins.loader import action_loader

DOCUMENTATION = """
name: sparkloom_once
type: aggregate
short_description: read each action of ours once in a run
description: [Prints nothing.]
"""


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "sparkloom_once"
    CALLBACK_NEEDS_ENABLED = True

    def v2_playbook_on_task_start(self, task: Any, is_conditional: bool) -> None:
        if task.action.startswith("sparkloom_"):
            action_loader.get(task.action, class_only=True)
            # Whatever talks to the cluster imports it when it is asked, a second of work.
            if "sparkloom.site.client" in sys.modules:
                import kubernetes  # noqa: F401
