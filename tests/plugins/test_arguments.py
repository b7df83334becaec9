"""What a task may say to an action plugin: its DOCUMENTATION tells it, and anything else is refused before work."""

from __future__ import annotations

import functools
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

from tests.places import REPO
from tests.plugins.loading import action, module

FILES = {path.stem for path in (REPO / "plugins/action").glob("sparkloom_*.py")}
# Beside a module of the same name only the controller's part of it: the module itself refuses what it does not know.
MODULES = {path.stem for path in (REPO / "plugins/modules").glob("sparkloom_*.py")}
ACTIONS = sorted(FILES - MODULES)
SWITCHES = [(True, True), ("true", True), ("True", True), ("yes", True), ("on", True), ("1", True), (1, True),
            (False, False), ("false", False), ("False", False), ("no", False), ("off", False), ("0", False),
            (0, False)]  # fmt: skip


@functools.cache
def documented(name: str) -> dict[str, Any]:
    return dict(yaml.safe_load(action(name).DOCUMENTATION))


def options(name: str) -> dict[str, Any]:
    return dict(documented(name).get("options") or {})


def together(name: str) -> dict[str, dict[str, set[str]]]:
    """By option and choice, what that choice asks for."""
    asked: dict[str, dict[str, set[str]]] = {}
    for option, choice, names in action(name).ActionModule.required_if:
        asked.setdefault(option, {})[choice] = set(names)
    return asked


def run(name: str, args: dict[str, Any]) -> dict[str, Any]:
    """The plugin as a task runs it; its work gives back the arguments that reached it."""
    task = SimpleNamespace(args=args, async_val=0, check_mode=False, diff=False, environment=None)
    connection = SimpleNamespace(_shell=SimpleNamespace(tmpdir="/nowhere"))
    plugin = action(name).ActionModule(task, connection, SimpleNamespace(), None, None, None)
    plugin.work = lambda arguments, task_vars: {"reached": arguments}
    return dict(plugin.run(task_vars={}))


def value_for(option: dict[str, Any]) -> Any:
    """A value that the option takes."""
    if "choices" in option:
        return option["choices"][0]
    if "suboptions" in option:
        return {name: value_for(inner) for name, inner in option["suboptions"].items()}
    return {"str": "a", "path": "/a", "int": 1, "float": 1.5, "bool": True, "list": [], "dict": {}}[option["type"]]


def complete(name: str, choice: str = "") -> dict[str, Any]:
    """What the first choice, or the given one, asks for."""
    known = options(name)
    args = {option: value_for(entry) for option, entry in known.items() if entry.get("required")}
    for option, asked in together(name).items():
        args[option] = choice or args[option]
        args |= {needed: value_for(known[needed]) for needed in asked.get(args[option], ())}
    return args


@pytest.mark.parametrize("name", ACTIONS)
def test_an_unknown_argument_is_refused_by_name(name: str) -> None:
    assert "reached" in run(name, complete(name))
    with pytest.raises(AnsibleActionFail, match="misspelt"):
        run(name, complete(name) | {"misspelt": 1})


@pytest.mark.parametrize("name", ACTIONS)
def test_a_missing_argument_is_refused_by_name(name: str) -> None:
    choices = [choice for asked in together(name).values() for choice in asked]
    for choice in choices or [""]:
        whole = complete(name, choice)
        for missing in whole:
            with pytest.raises(AnsibleActionFail, match=missing):
                run(name, {option: value for option, value in whole.items() if option != missing})


@pytest.mark.parametrize("name", ACTIONS)
def test_the_documentation_is_whole(name: str) -> None:
    told = documented(name)
    assert told["module"] == name and told["short_description"] and told["description"]
    for option, entry in options(name).items():
        assert entry["description"] and entry["type"], option
    for dispatch in {"what", "do", "command"} & set(options(name)):
        assert options(name)[dispatch]["choices"]


def sentences(entry: dict[str, Any]) -> Iterator[str]:
    yield from entry.get("description", [])
    for inner in (entry.get("options") or entry.get("suboptions") or {}).values():
        yield from sentences(inner)


@pytest.mark.parametrize("name", sorted(FILES | MODULES))
def test_a_comma_does_not_cut_a_description_in_two(name: str) -> None:
    """In a list on one line each comma begins another entry, unless the sentence is quoted."""
    loaded = module(name) if name in MODULES else action(name)
    told = list(sentences(yaml.safe_load(loaded.DOCUMENTATION)))
    assert told and all(sentence.endswith(".") for sentence in told)


def test_ansible_shows_the_documentation() -> None:
    command = [str(Path(sys.executable).parent / "ansible-doc"), "-t", "module", "-j", *ACTIONS]
    told = subprocess.run(command, cwd=REPO, env=os.environ, capture_output=True, text=True, check=True)
    assert set(json.loads(told.stdout)) >= set(ACTIONS)


@pytest.mark.parametrize(("given", "meant"), SWITCHES)
def test_a_switch_is_read_as_people_write_it(given: Any, meant: bool) -> None:
    """`-e x=false` arrives as text, which Python takes for true."""
    assert run("sparkloom_plan", {"profile": "p", "force": given})["reached"]["force"] is meant
    consent = dict.fromkeys(("serving", "cluster", "fabric", "nodes", "weights"), given)
    reached = run("sparkloom_teardown", {"what": "plan", "consent": consent})["reached"]
    assert set(reached["consent"].values()) == {meant}


@pytest.mark.parametrize("given", ["maybe", "2", "", None])
def test_anything_else_is_no_switch(given: Any) -> None:
    with pytest.raises(AnsibleActionFail, match="force"):
        run("sparkloom_plan", {"profile": "p", "force": given})


# --- the roles' tasks ----------------------------------------------------------------------------------------------


def tasks(entries: Any, above: Any = None) -> Iterator[dict[str, Any]]:
    """Each task, with what `module_defaults` of it and of the blocks around it say."""
    for entry in entries or []:
        defaults = {**(above or {}), **entry.get("module_defaults", {})}
        yield {**entry, "module_defaults": defaults}
        for part in ("block", "rescue", "always"):
            yield from tasks(entry.get(part), defaults)


def calls() -> Iterator[tuple[str, str, str, dict[str, Any]]]:
    for path in sorted(REPO.glob("roles/*/tasks/*.yml")):
        for task in tasks(yaml.safe_load(path.read_text())):
            for name in set(task) & set(ACTIONS):
                yield (
                    path.parent.parent.name,
                    f"{path.name}: {task['name']}",
                    name,
                    {**task["module_defaults"].get(name, {}), **(task[name] or {})},
                )


CALLS = list(calls())


def test_every_plugin_and_every_choice_is_called_by_a_role() -> None:
    assert {name for _, _, name, _ in CALLS} == set(ACTIONS)
    for name in ACTIONS:
        for dispatch in {"what", "do"} & set(options(name)):
            used = {args[dispatch] for _, _, called, args in CALLS if called == name}
            assert used == set(options(name)[dispatch]["choices"]), name


@pytest.mark.parametrize(("role", "task", "name", "args"), CALLS, ids=lambda value: value if type(value) is str else "")
def test_a_role_says_what_the_plugin_takes(role: str, task: str, name: str, args: dict[str, Any]) -> None:
    known = options(name)
    assert set(args) <= set(known)
    assert {option for option, entry in known.items() if entry.get("required")} <= set(args)
    for option, asked in together(name).items():
        assert args[option] in known[option]["choices"]
        assert asked.get(args[option], set()) <= set(args)
    for option, value in args.items():
        if isinstance(value, dict) and "suboptions" in known[option]:
            inner = known[option]["suboptions"]
            assert {key for key, entry in inner.items() if entry.get("required")} <= set(value) <= set(inner)


def switches(described: dict[str, Any]) -> Iterator[str]:
    for name, option in described.items():
        if option["type"] == "bool":
            yield name
        yield from switches(option.get("suboptions", {}))


@pytest.mark.parametrize("role", sorted({role for role, *_ in CALLS} | {"model_store"}))
def test_a_roles_switch_is_read_as_one(role: str) -> None:
    """By `| bool`, or by a plugin that declares it: the text `false` of -e is true everywhere else."""
    known = {name for plugin in ACTIONS for name in switches(options(plugin))}
    spec = yaml.safe_load((REPO / f"roles/{role}/meta/argument_specs.yml").read_text())["argument_specs"]["main"]
    names = [name for name, option in spec["options"].items() if option["type"] == "bool"]
    for path in [*REPO.glob(f"roles/{role}/tasks/*.yml"), *REPO.glob(f"roles/{role}/vars/*.yml")]:
        for line in path.read_text().splitlines():
            for name in (name for name in names if re.search(rf"(?<![\w]){name}\b(?! \| bool|=true|:)", line)):
                handed = re.fullmatch(rf'\s*(\w+): "{{{{ {name} }}}}"', line)
                assert handed and handed[1] in known, f"{path.name}: {line.strip()}"
