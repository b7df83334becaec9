"""Reads an entry's `src` from the role's files/, packs its `program`: the module gets whole contents."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible.plugins.action import ActionBase

from sparkloom.site import ansible, node_module


class ActionModule(ActionBase):
    def run(self, tmp: Any = None, task_vars: Any = None) -> dict[str, Any]:
        result = super().run(tmp, task_vars)
        args = ansible.plain(self._task.args)
        state = args.get("state", "present")
        if state == "present":
            args["files"] = [node_module.whole(entry, self._read) for entry in args["files"]]
        return result | node_module.run(self, args, task_vars, Path(__file__).parents[1])

    def _read(self, source: str) -> str:
        return Path(self._find_needle("files", source)).read_text()
