"""Reads an entry's `src` from the role's files/, packs its `program`: the module gets whole contents."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible.plugins.action import ActionBase

from sparkloom.render import pack
from sparkloom.site import ansible, node_module


class ActionModule(ActionBase):
    def run(self, tmp: Any = None, task_vars: Any = None) -> dict[str, Any]:
        result = super().run(tmp, task_vars)
        args = ansible.plain(self._task.args)
        state = args.get("state", "present")
        if state == "present":
            args["files"] = [self._read(entry) for entry in args["files"]]
        return result | node_module.run(self, args, task_vars, Path(__file__).parents[1])

    def _read(self, entry: dict[str, Any]) -> dict[str, Any]:
        kept = {key: value for key, value in entry.items() if key not in ("src", "program")}
        if "program" in entry:
            return kept | {"content": pack.program(entry["program"]).base64, "encoding": "base64"}
        if "src" in entry:
            return kept | {"content": Path(self._find_needle("files", entry["src"])).read_text()}
        return kept
