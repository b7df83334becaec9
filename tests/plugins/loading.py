"""What tasks of roles do, as tests ask for it: on a node, and on the controller without Ansible around it."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

from sparkloom.site.ansible import Context
from tests.places import REPO as REPO


def module(name: str, kind: str = "tasks") -> ModuleType:
    return importlib.import_module(f"sparkloom.onnode.{kind}.{name}")


def context(task_vars: dict[str, Any] | None = None, *, dry: bool = False) -> Context:
    """A task's, whose words nobody hears."""
    action = SimpleNamespace(_display=SimpleNamespace(display=lambda text, newline=True: None))
    return Context(action, task_vars or {}, dry)


def on_node(do: str, *, dry: bool = False, env: dict[str, str] | None = None, **params: Any) -> dict[str, Any]:
    """A task as a node does it, in a process of its own."""
    given = json.dumps({"steps": [{"do": do, "params": params}], "check_mode": dry})
    command = [sys.executable, "-c", "from sparkloom.onnode.tasks import main; main.main([])"]
    done = subprocess.run(command, input=given, capture_output=True, text=True, env=env, check=True)
    return dict(json.loads(done.stdout.splitlines()[-1])["answers"][0])
