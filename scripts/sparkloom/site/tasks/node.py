"""Asks one machine all that the roles keep there, in one go: each task dry, with its own arguments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ansible.errors import AnsibleConnectionFailure, AnsibleError

from sparkloom.base.errors import InputError
from sparkloom.site import executor
from sparkloom.site.ansible import Context, Data
from sparkloom.site.doctor import asking, groups, parts, roles


def dry_run(
    context: Context,
    known: Mapping[str, Any],  # what was planned for all, by the name that roles register it
    spark: bool,  # whether it is a Spark; else a server of K3s alone
) -> Data:
    """`said` has what each task answered. It never fails."""
    node = Node(replace(context, dry=True), known)
    try:
        return {"said": node.said(list(parts.of_a_node(context.node, known, spark=spark))), "trouble": ""}
    except AnsibleConnectionFailure:
        raise
    except (AnsibleError, InputError) as error:
        return {"said": [], "trouble": str(error)}


class Node:
    def __init__(self, context: Context, known: Mapping[str, Any]) -> None:
        self.context = context
        # What a task of the same file registers counts as unchanged until its answer is there.
        self.asking = asking.Asking(context, {"__roce_fabric_foreign": {"nodes": {}}, **known})

    def said(self, asked: list[parts.Part]) -> list[Data]:
        tasks = [task for part in asked for task in self.asking.tasks(part) if task.module in parts.ON_A_NODE]
        for task in tasks:
            if task.register:
                self.asking.known.setdefault(task.register, {"changed": False})
        tasks = [task for task in tasks if self.asking.holds(task)]
        steps = [self._step(task) for task in tasks]
        if k3s := any(part.role == "k3s" for part in asked):
            secrets = {"paths": self.asking.known["__k3s_plan"]["secrets"], "create": False, "marks": True}
            steps.append({"do": "k3s_secrets", "params": secrets})
        answers = self._ask(steps)
        marks = answers.pop() if k3s else {}
        self.asking.known |= {task.register: answer for task, answer in zip(tasks, answers, strict=True)}
        said = [_entry(task, answer) for task, answer in zip(tasks, answers, strict=True) if self.asking.holds(task)]
        return [*said, *self._install(asked), *self._weights(), {"marks": marks}]

    def _step(self, task: roles.Task) -> Data:
        """As the node gets it: its arguments judged, its files whole."""
        if task.module == "files":  # tokens are compared by their marks, and travel nowhere
            task = replace(task, args={key: value for key, value in task.args.items() if key != "secrets"})
        args = self.asking.args(task)
        if task.module == "ansible.builtin.command":
            return {"argv": [str(word) for word in args["argv"]]}
        folder = roles.ROLES / task.role / "files"
        return executor.step(self.context, task.module, args, lambda name: (folder / name).read_text())

    def _ask(self, steps: list[Data]) -> list[Data]:
        answers = executor.ask(self.context, steps)
        if answers and "asked" not in answers[0]:
            raise AnsibleError(str(answers[0].get("msg", answers[0])))
        return answers

    def _install(self, asked: list[parts.Part]) -> list[Data]:
        """What would be installed, and what is refused, goes by what the node answered."""
        said = []
        for task in [task for part in asked if part.role == "gpu_runtime" for task in self.asking.tasks(part)]:
            if task.module in roles.INCLUDES and self.asking.holds(task):
                said.append(_entry(task, {"changed": True}))
            elif task.module == "ansible.builtin.assert":
                kept = self.asking.args(task)
                if not kept["that"]:
                    said.append(_entry(task, {"failed": True, "msg": kept["fail_msg"]}))
        return said

    def _weights(self) -> list[Data]:
        """Of each group that stands on this machine."""
        return [entry for group in self.asking.known.get(groups.KNOWN, ()) for entry in self._store(group)]

    def _store(self, group: Data) -> list[Data]:
        if self.context.node not in group["weights"].get("nodes", ()):
            return []
        tasks = [task for task in self.asking.tasks(parts.WEIGHTS) if task.module.startswith("store.")]
        asked = self.asking.with_variables({**groups.variables(group), "__model_serving_weights": group["weights"]})
        return [_entry(task, asked.run(task.module, asked.args(task)), group["name"]) for task in tasks]


def _entry(task: roles.Task, answer: Data, group: str = "") -> Data:
    said = {"role": task.role, "area": task.area, "task": task.name, "register": task.register, "answer": answer}
    return {**said, "group": group} if group else said
