"""Runs what a task of a role asks for: a function of `site.tasks` here, or one of `onnode.tasks` on the node.

`do` names it, `fabric.plan` here and `files` there; its parameters are the task's arguments, and their types what these
are held to. All that nodes do is one program, packed here and run there from memory: it leaves nothing behind.

Imports nothing from Ansible: what it needs of it comes with the action plugin that calls.
"""

from __future__ import annotations

import importlib
import inspect
import json
import shlex
import time
import types
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NotRequired, Union, get_args, get_origin, get_type_hints, is_typeddict

from sparkloom.base.errors import InputError
from sparkloom.inputs.inventory import require_own
from sparkloom.render import pack
from sparkloom.site.ansible import Context, Data, example, guarded, plain
from sparkloom.site.store.remote import IN_MEMORY

SCALARS = {str: "str", int: "int", float: "float", bool: "bool", Path: "path"}


def run(action: Any, task_vars: Data) -> Data:
    """The task's result; a wrong argument and a connection that fails are Ansible's to tell."""
    args = plain(action._task.args)
    context = Context(action, task_vars, dry=bool(action._task.check_mode))

    def work() -> Data:
        require_own(example(task_vars))
        return perform(context, str(args.pop("do", "")), args)

    return guarded(work)


def perform(context: Context, do: str, args: Data) -> Data:
    if "." in do:
        function = named(do)
        return dict(function(context, **arguments(context, function, args)))
    return ask(context, [step(context, do, args, context.role_file)])[0]


def step(context: Context, do: str, args: Data, read: Callable[[str], str]) -> Data:
    """As the node gets it; `read` gives a file of the role's."""
    params = arguments(context, named(do), args)
    if do == "files":
        params["files"] = [whole(entry, read) for entry in params["files"]]
    return {"do": do, "params": params}


def named(do: str) -> Callable[..., Any]:
    """The function that a task's `do` names."""
    family, _, name = do.partition(".")
    module = f"sparkloom.site.tasks.{family}" if name else f"sparkloom.onnode.tasks.{family}"
    try:
        function = getattr(importlib.import_module(module), name or "main")
        if inspect.isfunction(function) and function.__module__ == module and not name.startswith("_"):
            return function
    except (ImportError, AttributeError, ValueError):
        pass
    message = "expected a function of sparkloom.site.tasks, as fabric.plan, or a module of onnode.tasks, as files"
    raise InputError.single(f"do: {do or 'nothing'}", message, rule="no-such-task")


# --- arguments -------------------------------------------------------------------------------------------------


def arguments(context: Context, function: Callable[..., Any], args: Data) -> Data:
    """As Ansible reads them (`yes` of a switch is true); refused by name where they are not what the function takes."""
    task, known = context.action._task, specification(function)
    said, task.args = task.args, args
    try:
        _, judged = context.action.validate_argument_spec(known)
    finally:
        task.args = said  # a task with `until` is run again
    return {name: _given(known[name], value) for name, value in plain(judged).items() if value is not None}


def _given(option: Data, value: Any) -> Any:
    """Without the keys that an entry leaves out: Ansible fills them with None."""
    if "options" not in option:
        return value
    entries = value if option["type"] == "list" else [value]
    given = [{key: said for key, said in entry.items() if said is not None} for entry in entries]
    return given if option["type"] == "list" else given[0]


def specification(function: Callable[..., Any]) -> Data:
    """A function's parameters as Ansible's argument specification; the first one is the context."""
    hints = get_type_hints(function)
    return {
        name: _option(hints[name]) | _default(parameter.default)
        for name, parameter in list(inspect.signature(function).parameters.items())[1:]
    }


def _default(value: Any) -> Data:
    if value is inspect.Parameter.empty:
        return {"required": True}
    return {} if value is None else {"default": plain(value)}


def _option(hint: Any) -> Data:
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (types.UnionType, Union):  # of None too: the argument may be left out
        return _option(inner[0])
    if origin is Literal:
        return {"type": SCALARS[type(inner[0])], "choices": list(inner)}
    if hint in SCALARS:
        return {"type": SCALARS[hint]}
    if is_typeddict(hint):
        fields = get_type_hints(hint, include_extras=True)
        return {"type": "dict", "options": {name: _field(field) for name, field in fields.items()}}
    if origin is not None and issubclass(origin, Mapping):
        return {"type": "dict"}
    element = _option(inner[0])
    return {"type": "list", "elements": element["type"]} | {k: v for k, v in element.items() if k == "options"}


def _field(hint: Any) -> Data:
    return _option(get_args(hint)[0]) if get_origin(hint) is NotRequired else _option(hint) | {"required": True}


# --- on a node -------------------------------------------------------------------------------------------------


def ask(context: Context, steps: Sequence[Data]) -> list[Data]:
    """What each step answered, with the two moments of this machine's clock between which it did: clocks are judged."""
    program = pack.program("tasks").archive
    given = json.dumps({"steps": steps, "check_mode": context.dry}).encode()
    line = f"{context.environment} {context.interpreter} -I -c {shlex.quote(IN_MEMORY)} {len(program)}".lstrip()
    asked = time.time()
    told = answer(context.execute(line, program + given))
    answered = time.time()
    if "answers" not in told:
        return [told] * len(steps)
    pairs = zip(told["answers"], told["ago"], strict=True)
    return [said | {"asked": asked, "answered": answered - ago} for said, ago in pairs]


def answer(ran: Mapping[str, Any]) -> Data:
    """The last line; what a login script or sudo says stands before it."""
    for line in reversed(str(ran["stdout"]).splitlines()):
        try:
            told = json.loads(line)
        except ValueError:
            continue
        if isinstance(told, dict):
            return told
    said = str(ran["stderr"]).strip() or str(ran["stdout"]).strip() or "nothing"
    message = f"the node gave no answer, exit {ran['rc']}; it said: {said[-2000:]}"
    return {"failed": True, "rc": ran["rc"], "msg": message}


def whole(entry: Mapping[str, Any], read: Callable[[str], str]) -> Data:
    """An entry of `files` with its content: of a file of its role, or a program of ours."""
    kept = {key: value for key, value in entry.items() if key not in ("src", "program")}
    if "program" in entry:
        return kept | {"content": pack.program(entry["program"]).base64, "encoding": "base64"}
    return kept | ({"content": read(entry["src"])} if "src" in entry else {})
