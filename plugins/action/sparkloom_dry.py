from __future__ import annotations

import json
import shlex
import time
from dataclasses import replace
from pathlib import Path

from ansible.errors import AnsibleConnectionFailure, AnsibleError
from ansible.plugins.action import ActionBase

from sparkloom.base.errors import InputError
from sparkloom.render import pack
from sparkloom.site import ansible, node_module
from sparkloom.site.doctor import asking, groups, parts, roles
from sparkloom.site.store.remote import IN_MEMORY

DOCUMENTATION = r"""
module: sparkloom_dry
short_description: Ask one machine all that the roles keep there, in one go
description:
  - Each task is asked dry with its own arguments; C(said) has what each answered. It never fails.
  - For role doctor, which plans what is asked.
options:
  known: {type: dict, required: true, description: ["What was planned for all, by the name that roles register it."]}
  spark: {type: bool, required: true, description: [Whether it is a Spark; else a server of K3s alone.]}
"""
PLUGINS = Path(__file__).parents[1]


class ActionModule(ansible.Action, ActionBase, documentation=DOCUMENTATION):
    _requires_connection = True

    def work(self, args: ansible.Data, task_vars: ansible.Data) -> ansible.Data:
        host = str(task_vars["inventory_hostname"])
        # What a task of the same file registers counts as unchanged until its answer is there.
        self.asking = asking.Asking(self, task_vars, {"__roce_fabric_foreign": {"nodes": {}}, **args["known"]})
        try:
            said = self._said(host, list(parts.of_a_node(host, args["known"], spark=args["spark"])), task_vars)
        except AnsibleConnectionFailure:
            raise
        except (AnsibleError, InputError) as error:
            return {"said": [], "trouble": str(error)}
        return {"said": said, "trouble": ""}

    def _said(self, host: str, asked: list[parts.Part], task_vars: ansible.Data) -> list[ansible.Data]:
        tasks = [task for part in asked for task in self.asking.tasks(part) if task.module in parts.ON_A_NODE]
        for task in tasks:
            if task.register:
                self.asking.known.setdefault(task.register, {"changed": False})
        tasks = [task for task in tasks if self.asking.holds(task)]
        steps = [self._step(task) for task in tasks]
        if k3s := any(part.role == "k3s" for part in asked):
            secrets = {"paths": self.asking.known["__k3s_plan"]["secrets"], "create": False, "marks": True}
            steps.append({"module": "sparkloom_k3s_secrets", "params": secrets})
        answers = self._ask(steps, task_vars)
        marks = answers.pop() if k3s else {}
        self.asking.known |= {task.register: answer for task, answer in zip(tasks, answers, strict=True)}
        said = [_entry(task, answer) for task, answer in zip(tasks, answers, strict=True) if self.asking.holds(task)]
        return [*said, *self._install(asked), *self._weights(host), {"marks": marks}]

    def _step(self, task: roles.Task) -> ansible.Data:
        """As the module gets it: its options judged, its files whole."""
        if task.module == "sparkloom_files":  # tokens are compared by their marks, and travel nowhere
            task = replace(task, args={key: value for key, value in task.args.items() if key != "secrets"})
        args = self.asking.args(task)
        if task.module == "ansible.builtin.command":
            return {"argv": [str(word) for word in args["argv"]]}
        if task.module == "sparkloom_files":
            folder = roles.ROLES / task.role / "files"
            args["files"] = [
                node_module.whole(entry, lambda name: (folder / name).read_text()) for entry in args["files"]
            ]
        self._task.args = args
        documented = node_module.documentation(PLUGINS / f"modules/{task.module}.py")
        _, judged = self.validate_argument_spec(ansible.specification(documented))
        return {"module": task.module, "params": ansible.plain(judged)}

    def _ask(self, steps: list[ansible.Data], task_vars: ansible.Data) -> list[ansible.Data]:
        used = sorted({PLUGINS / f"modules/{step['module']}.py" for step in steps if "module" in step})
        packed = pack.modules(tuple(used), PLUGINS / "module_utils")
        if packed is None:
            raise AnsibleError(f"one of {', '.join(path.stem for path in used)} needs more of Ansible than a node has")
        data = json.dumps({"steps": steps, "check_mode": True}).encode()
        python = node_module.interpreter(self, task_vars)
        line = f"exec {python} -I -c {shlex.quote(IN_MEMORY)} {len(packed.archive)}"
        asked = time.time()
        told = node_module.answer("the node", self._low_level_execute_command(line, in_data=packed.archive + data))
        if "answers" not in told:
            raise AnsibleError(str(told.get("msg", told)))
        answered = time.time()  # clocks are judged by the two moments between which each answer was given
        pairs = zip(told["answers"], told["ago"], strict=True)
        return [answer | {"asked": asked, "answered": answered - ago} for answer, ago in pairs]

    def _install(self, asked: list[parts.Part]) -> list[ansible.Data]:
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

    def _weights(self, host: str) -> list[ansible.Data]:
        """Of what stands on this machine: of the one profile, or of each group."""
        known = self.asking.known
        each = known.get(groups.KNOWN) or [{"name": "", "weights": known.get("__model_serving_weights", {})}]
        return [entry for group in each for entry in self._store(host, group)]

    def _store(self, host: str, group: ansible.Data) -> list[ansible.Data]:
        if host not in group["weights"].get("nodes", ()):
            return []
        tasks = [task for task in self.asking.tasks(parts.WEIGHTS) if task.module == "sparkloom_store"]
        told = groups.told(group) if group["name"] else {}
        asked = self.asking.beside({**told, "__model_serving_weights": group["weights"]})
        return [_entry(task, asked.run(task.module, asked.args(task)), group["name"]) for task in tasks]


def _entry(task: roles.Task, answer: ansible.Data, group: str = "") -> ansible.Data:
    said = {"role": task.role, "area": task.area, "task": task.name, "register": task.register, "answer": answer}
    return {**said, "group": group} if group else said
