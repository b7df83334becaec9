"""Asks tasks of the roles within one task of the doctor: Ansible's own way costs a process for each, on each node."""

from __future__ import annotations

from collections import ChainMap
from dataclasses import replace
from functools import cache
from typing import Any

from sparkloom.site import executor
from sparkloom.site.ansible import Context, Data, guarded, plain
from sparkloom.site.doctor import roles
from sparkloom.site.doctor.parts import Part
from sparkloom.site.doctor.roles import Task

# Whoever only asks puts no load on a GPU, and waits for nothing to settle.
LIGHT = {"ansible_check_mode": True, "preflight_cuda": False, "roce_fabric_settle_seconds": 0}
PROFILES = ("preflight_profile", "model_serving_profile", "gateway_profile")


def given(profile: str) -> Data:
    """What every role is told: which profile is judged, and that this is a dry run."""
    return {**LIGHT, **dict.fromkeys(PROFILES, profile)}


class Asking:
    """The roles' tasks with values in the place of their templates, as one machine sees them."""

    def __init__(self, context: Context, known: Data) -> None:
        self._context = context
        self.known = known  # what was registered so far, by name
        self.machines: dict[str, Data] = {}  # what the machines registered
        self._load = cache(lambda path: context.action._loader.load_from_file(str(path), trusted_as_template=True))

    def with_variables(self, more: Data) -> Asking:
        """The same with other variables too, and with what it registers kept apart: for one of several groups."""
        made = Asking(self._context, {**self.known, **more})
        made.machines = self.machines
        return made

    def tasks(self, part: Part) -> list[Task]:
        return roles.tasks(part.role, part.file, self._load)

    def task(self, part: Part, register: str) -> Task:
        """The one that registers a name."""
        return next(task for task in self.tasks(part) if task.register == register)

    def holds(self, task: Task) -> bool:
        templar = self._templar(task)
        return all(templar.evaluate_conditional(condition) for condition in task.when)

    def args(self, task: Task) -> Data:
        return dict(plain(self._templar(task).template(task.args)))

    def _templar(self, task: Task) -> Any:
        seen = roles.variables(task.role, self._context.vars, self._load, self.known)
        return self._context.action._templar.copy_with_new_env(available_variables={**seen, **task.variables})

    def run(self, do: str, args: Data) -> Data:
        """What another task asks for, in this process, and dry whatever the play says."""
        seen = {**self._context.vars, **self.known}
        if self.machines:
            every = self._context.vars["hostvars"]
            seen["hostvars"] = {host: ChainMap(self.machines.get(host, {}), every[host]) for host in every}
        context = replace(self._context, vars=seen, dry=True)
        return dict(plain(guarded(lambda: executor.perform(context, do, args))))
