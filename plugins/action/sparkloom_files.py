"""Reads on the controller what an entry's `src` names in the role's files/: the module gets whole contents."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible.plugins.action import ActionBase

from sparkloom.site import ansible


class ActionModule(ActionBase):
    def run(self, tmp: Any = None, task_vars: Any = None) -> dict[str, Any]:
        result = super().run(tmp, task_vars)
        args = ansible.plain(self._task.args)
        state = args.get("state", "present")
        if state == "present":
            args["files"] = [self._read(entry) for entry in args["files"]]
        return result | self._execute_module(module_args=args, task_vars=task_vars)

    def _read(self, entry: dict[str, Any]) -> dict[str, Any]:
        if "src" not in entry:
            return entry
        found = Path(self._find_needle("files", entry["src"]))
        return {key: value for key, value in entry.items() if key != "src"} | {"content": found.read_text()}
