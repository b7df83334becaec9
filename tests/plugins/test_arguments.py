"""What a task may say: the parameters of what it names tell it, and anything else is refused before work."""

from __future__ import annotations

import functools
import importlib
import inspect
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

from sparkloom.base.errors import InputError
from sparkloom.render import pack
from sparkloom.site import executor
from sparkloom.site.ansible import Context
from tests.places import REPO

HERE = REPO / "scripts/sparkloom/site/tasks"
ON_A_NODE = sorted(set(pack.TASKS) - {"main"})
FOLLOWED = {"image", "node", "store", "k3s.renew_access"}  # here too, about what a node does
SWITCHES = [(True, True), ("true", True), ("True", True), ("yes", True), ("on", True), ("1", True), (1, True),
            (False, False), ("false", False), ("False", False), ("no", False), ("off", False), ("0", False),
            (0, False)]  # fmt: skip


def public(family: str) -> Iterator[str]:
    """What tasks ask for: functions that take their context and give their result."""
    module = importlib.import_module(f"sparkloom.site.tasks.{family}")
    for name, function in vars(module).items():
        own = inspect.isfunction(function) and function.__module__ == module.__name__ and not name.startswith("_")
        if own and function.__annotations__.get("context") == "Context":
            yield f"{family}.{name}"


FAMILIES = sorted(path.stem for path in HERE.glob("[a-z]*.py"))
TASKS = [*ON_A_NODE, *(task for family in FAMILIES for task in public(family))]


@functools.cache
def options(task: str) -> dict[str, Any]:
    return executor.specification(executor.named(task))


def reached(task: str, args: dict[str, Any]) -> dict[str, Any]:
    """The arguments as they get to the function."""
    asked = SimpleNamespace(args=args, async_val=0, check_mode=False, diff=False, environment=None)
    connection = SimpleNamespace(_shell=SimpleNamespace(tmpdir="/nowhere"))
    action = type("Plugin", (ActionBase,), {"run": None})(asked, connection, SimpleNamespace(), None, None, None)
    return executor.arguments(Context(action, {}, dry=False), executor.named(task), args)


def value_for(option: dict[str, Any]) -> Any:
    """A value that the option takes."""
    if "choices" in option:
        return option["choices"][0]
    if "options" in option:
        entry = {name: value_for(inner) for name, inner in option["options"].items()}
        return [entry] if option["type"] == "list" else entry
    return {"str": "a", "path": "/a", "int": 1, "float": 1.5, "bool": True, "list": [], "dict": {}}[option["type"]]


def complete(task: str) -> dict[str, Any]:
    return {name: value_for(option) for name, option in options(task).items() if option.get("required")}


@pytest.mark.parametrize("task", TASKS)
def test_an_unknown_argument_is_refused_by_name(task: str) -> None:
    reached(task, complete(task))
    with pytest.raises(AnsibleActionFail, match="misspelt"):
        reached(task, complete(task) | {"misspelt": 1})


@pytest.mark.parametrize("task", TASKS)
def test_a_missing_argument_is_refused_by_name(task: str) -> None:
    whole = complete(task)
    for missing in whole:
        with pytest.raises(AnsibleActionFail, match=missing):
            reached(task, {name: value for name, value in whole.items() if name != missing})


@pytest.mark.parametrize("task", TASKS)
def test_what_is_given_and_what_is_left_out_fit_the_function(task: str) -> None:
    """By each option's type: what Ansible makes of it, and the defaults that the signature has."""
    every = {name: value_for(option) for name, option in options(task).items()}
    assert set(reached(task, every)) == set(options(task))
    inspect.signature(executor.named(task)).bind(None, **reached(task, complete(task)))


@pytest.mark.parametrize("task", TASKS)
def test_every_module_says_what_it_is(task: str) -> None:
    module = sys.modules[executor.named(task).__module__]
    assert module.__doc__ and "." in module.__doc__


NO_TASKS = ("", "fabric", "fabric.", "fabric.none", "image._remote", "nothing", "fabric.plan.x", "../x")


@pytest.mark.parametrize("do", NO_TASKS)
def test_what_is_no_task_is_said_with_what_one_looks_like(do: str) -> None:
    with pytest.raises(InputError, match=r"as fabric\.plan"):
        executor.named(do)


def test_ansible_shows_how_a_task_is_called() -> None:
    command = [str(Path(sys.executable).parent / "ansible-doc"), "-t", "module", "-j", "sparkloom", "sparkloom_node"]
    told = subprocess.run(command, cwd=REPO, env=os.environ, capture_output=True, text=True, check=True)
    assert set(json.loads(told.stdout)) == {"sparkloom", "sparkloom_node"}


@pytest.mark.parametrize(("given", "meant"), SWITCHES)
def test_a_switch_is_read_as_people_write_it(given: Any, meant: bool) -> None:
    """`-e x=false` arrives as text, which Python takes for true."""
    assert reached("site.plan", {"profile": "p", "force": given})["force"] is meant
    consent = dict.fromkeys(("serving", "cluster", "fabric", "nodes", "weights"), given)
    assert set(reached("teardown.plan", {"consent": consent})["consent"].values()) == {meant}


@pytest.mark.parametrize("given", ["maybe", "2", ""])
def test_anything_else_is_no_switch(given: Any) -> None:
    with pytest.raises(AnsibleActionFail, match="force"):
        reached("site.plan", {"profile": "p", "force": given})


def test_what_an_entry_leaves_out_is_left_out_and_what_it_says_is_kept() -> None:
    told = reached("files", {"files": [{"path": "/a"}]})
    assert told == {"files": [{"path": "/a"}], "secrets": {}, "remember": False}
    adopt = {"files": [{"path": "/a", "content": None}]}
    assert reached("netplan", {"path": "/x", "adopt": adopt})["adopt"] == adopt


# --- the roles' tasks ----------------------------------------------------------------------------------------------


def tasks(entries: Any, above: Any = None) -> Iterator[dict[str, Any]]:
    """Each task, with what `module_defaults` of it and of the blocks around it say."""
    for entry in entries or []:
        defaults = {**(above or {}), **entry.get("module_defaults", {})}
        yield {**entry, "module_defaults": defaults}
        for part in ("block", "rescue", "always"):
            yield from tasks(entry.get(part), defaults)


def calls() -> Iterator[tuple[str, str, str, str, dict[str, Any]]]:
    for path in sorted(REPO.glob("roles/*/*/*.yml")):
        if path.parent.name in ("tasks", "handlers"):
            for task in tasks(yaml.safe_load(path.read_text())):
                for action in {"sparkloom", "sparkloom_node"} & set(task):
                    args = {**task["module_defaults"].get(action, {}), **task[action]}
                    yield path.parent.parent.name, f"{path.name}: {task['name']}", action, args.pop("do"), args


CALLS = list(calls())


def test_every_task_is_asked_for_by_a_role() -> None:
    without_one = {"without_api"}  # by `sparkloom status` and `logs`, where the cluster does not answer
    assert {do for _, _, _, do, _ in CALLS} | without_one == set(TASKS)


@pytest.mark.parametrize(
    ("role", "task", "action", "do", "args"), CALLS, ids=lambda value: value if type(value) is str else ""
)
def test_a_role_says_what_the_task_takes(role: str, task: str, action: str, do: str, args: dict[str, Any]) -> None:
    assert (action == "sparkloom_node") is ("." not in do or bool({do, do.partition(".")[0]} & FOLLOWED))
    known = options(do)
    assert set(args) <= set(known)
    assert {name for name, option in known.items() if option.get("required")} <= set(args)
    for name, value in args.items():
        for entry in value if isinstance(value, list) else [value]:
            if isinstance(entry, dict) and "options" in known[name]:
                inner = known[name]["options"]
                assert {key for key, option in inner.items() if option.get("required")} <= set(entry) <= set(inner)


def switches(described: dict[str, Any]) -> Iterator[str]:
    for name, option in described.items():
        if option["type"] == "bool":
            yield name
        yield from switches(option.get("options", {}))


@pytest.mark.parametrize("role", sorted({role for role, *_ in CALLS} | {"model_store"}))
def test_a_roles_switch_is_read_as_one(role: str) -> None:
    """By `| bool`, or by a task that declares it: the text `false` of -e is true everywhere else."""
    known = {name for task in TASKS for name in switches(options(task))}
    spec = yaml.safe_load((REPO / f"roles/{role}/meta/argument_specs.yml").read_text())["argument_specs"]["main"]
    names = [name for name, option in spec["options"].items() if option["type"] == "bool"]
    for path in [*REPO.glob(f"roles/{role}/tasks/*.yml"), *REPO.glob(f"roles/{role}/vars/*.yml")]:
        for line in path.read_text().splitlines():
            for name in (name for name in names if re.search(rf"(?<![\w]){name}\b(?! \| bool|=true|:)", line)):
                handed = re.fullmatch(rf'\s*(\w+): "{{{{ {name} }}}}"', line)
                assert handed and handed[1] in known, f"{path.name}: {line.strip()}"
