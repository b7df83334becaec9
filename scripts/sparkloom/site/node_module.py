"""A module of ours on a node: its arguments judged here, its archive run there from memory, its answer read.

Imports nothing from Ansible: what it needs of it comes with the action plugin that calls.
"""

from __future__ import annotations

import ast
import json
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from sparkloom.render import pack
from sparkloom.site.ansible import Data, plain, specification
from sparkloom.site.store.remote import IN_MEMORY

OURS = "sparkloom_"


def fits(action: Any) -> bool:
    """Where Ansible would send the module on standard input, to the host itself, and would wait for it."""
    task = action._task
    usual = task.async_val or task.delegate_to or any(task.environment or ())
    return task.action.startswith(OURS) and not usual and bool(action._connection.is_pipelining_enabled())


def run(action: Any, args: Mapping[str, Any], task_vars: Data, plugins: Path) -> Data:
    """The module's result. A connection that fails is Ansible's to tell."""
    task, module = action._task, plugins / f"modules/{action._task.action}.py"
    packed = pack.module(module, plugins / "module_utils") if fits(action) else None
    if packed is None:
        return dict(action._execute_module(module_args=dict(args), task_vars=task_vars))
    task.args, program = dict(args), packed.archive
    _, judged = action.validate_argument_spec(specification(documentation(module)))
    given = json.dumps({"params": plain(judged), "check_mode": bool(task.check_mode)}).encode()
    line = f"exec {interpreter(action, task_vars)} -I -c {shlex.quote(IN_MEMORY)} {len(program)}"
    return answer(task.action, action._low_level_execute_command(line, in_data=program + given))


def interpreter(action: Any, task_vars: Mapping[str, Any]) -> str:
    """The one that the inventory names, else the one that Ansible found; PATH knows where there is neither."""
    given = action._templar.template(task_vars.get("ansible_python_interpreter") or "auto")
    found = task_vars.get("ansible_facts", {}).get("discovered_interpreter_python", "python3")
    return shlex.quote(str(found if given.startswith("auto") else given))


def whole(entry: Mapping[str, Any], read: Callable[[str], str]) -> Data:
    """An entry of sparkloom_files with its content: of a file of its role, or a program of ours."""
    kept = {key: value for key, value in entry.items() if key not in ("src", "program")}
    if "program" in entry:
        return kept | {"content": pack.program(entry["program"]).base64, "encoding": "base64"}
    return kept | ({"content": read(entry["src"])} if "src" in entry else {})


def documentation(module: Path) -> str:
    """Read, not imported: a module is for the node."""
    for statement in ast.parse(module.read_text()).body:
        if isinstance(statement, ast.Assign) and getattr(statement.targets[0], "id", "") == "DOCUMENTATION":
            return str(ast.literal_eval(statement.value))
    raise ValueError(f"{module} has no DOCUMENTATION")


def answer(name: str, ran: Mapping[str, Any]) -> Data:
    """The last line; what a login script or sudo says stands before it."""
    for line in reversed(str(ran["stdout"]).splitlines()):
        try:
            told = json.loads(line)
        except ValueError:
            continue
        if isinstance(told, dict):
            return told
    said = str(ran["stderr"]).strip() or str(ran["stdout"]).strip() or "nothing"
    return {"failed": True, "rc": ran["rc"], "msg": f"{name} gave no answer, exit {ran['rc']}; it said: {said[-2000:]}"}
