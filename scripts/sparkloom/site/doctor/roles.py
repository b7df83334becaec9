"""The roles' own tasks and variables, as they stand in their files: the doctor asks with what they keep with."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sparkloom.base.repository import REPO
from sparkloom.site.ending import OURS

ROLES = REPO / "roles"
INCLUDES = ("ansible.builtin.include_tasks", "ansible.builtin.import_tasks")
Load = Callable[[Path], Any]  # a YAML file as Ansible reads it: its text may be a template
Variables = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Task:
    role: str
    area: str  # stem of its file
    name: str
    module: str  # or what one of ours does
    args: Any  # as written
    when: tuple[Any, ...]
    variables: Variables
    register: str


def own(role: str, area: str, name: str, register: str = "") -> Task:
    """Something heard that no file of the role asked for."""
    return Task(role, area, name, "", {}, (), {}, register)


def tasks(role: str, file: str, load: Load) -> list[Task]:
    """Those of one file, its blocks opened; what a rescue does is nobody's question."""
    return list(_opened(role, file, load(ROLES / role / "tasks" / f"{file}.yml")))


def _opened(
    role: str, file: str, entries: list[dict[str, Any]], when: tuple[Any, ...] = (), kept: Variables | None = None
) -> Iterator[Task]:
    for entry in entries:
        said = entry.get("when", [])
        conditions = (*when, *(said if isinstance(said, list) else [said]))
        variables = {**(kept or {}), **entry.get("vars", {})}
        if "block" in entry:
            yield from _opened(role, file, entry["block"], conditions, variables)
            continue
        module = next((key for key in entry if "." in key or key in OURS), "")
        args, register = entry.get(module) or {}, str(entry.get("register", ""))
        if module in OURS:
            module, args = args["do"], {key: value for key, value in args.items() if key != "do"}
        yield Task(role, file, entry["name"], module, args, conditions, variables, register)


def variables(role: str, given: Variables, load: Load, dependent: Variables) -> dict[str, Any]:
    """What the role's tasks see: its defaults, what the inventory says, its own, and what this run knows already."""
    return {**_file(role, "defaults", load), **given, **_file(role, "vars", load), **dependent}


def _file(role: str, kind: str, load: Load) -> Variables:
    path = ROLES / role / kind / "main.yml"
    return (load(path) if path.exists() else None) or {}


def included(task: Task) -> str:
    """The stem of the file that a task goes on with; nothing where it does something itself."""
    if task.module not in INCLUDES:
        return ""
    named = task.args.get("file", "") if isinstance(task.args, Mapping) else task.args
    return Path(str(named)).stem
