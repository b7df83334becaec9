"""Between Ansible's variables and the package: plain data in, a task's result out."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sparkloom import case
from sparkloom.base.errors import InputError, full
from sparkloom.base.finding import Finding
from sparkloom.base.repository import WORK
from sparkloom.case import Refused
from sparkloom.inputs import lock_file as locks
from sparkloom.inputs import serving
from sparkloom.inputs.cluster import Cluster
from sparkloom.inputs.inventory import GROUP, SERVERS
from sparkloom.onnode import smoke
from sparkloom.onnode.weights.names import StoreError
from sparkloom.site import patience, up
from sparkloom.site.checks.report import verdict as verdict
from sparkloom.site.groups import planning

Data = dict[str, Any]  # a task's arguments, its variables, its result
OURS = ("kubernetes_node", "management_address", "fabric_index", "management_interface")


def plain(value: Any) -> Any:
    """Ansible hands over strings and dicts of its own kinds; strict validation wants the builtin ones."""
    return json.loads(json.dumps(value, default=str))


def cluster(task_vars: Mapping[str, Any]) -> Cluster:
    """The site as its inventory says."""
    return case.cluster(inventory(task_vars))


def inventory(task_vars: Mapping[str, Any]) -> dict[str, Any]:
    """The inventory as `case.cluster` takes it: every host of the group, whatever --limit says."""
    for name in ("cluster", "fabric"):
        if not isinstance(task_vars.get(name), Mapping):
            raise InputError.single(f"group_vars/all/{name}.yml", f"expected a mapping '{name}:'", rule="missing-key")
    hosts = task_vars["groups"].get(GROUP)
    if not hosts:
        message = f"no hosts in the group {GROUP}; list your Sparks there"
        raise InputError.single("hosts.yml", message, rule="missing-key")
    hostvars = task_vars["hostvars"]

    def ours(host: str) -> dict[str, Any]:
        return {"name": host, **{key: hostvars[host][key] for key in OURS if key in hostvars[host]}}

    given = {"cluster": task_vars["cluster"], "fabric": task_vars["fabric"], "nodes": [ours(host) for host in hosts]}
    servers = task_vars["groups"].get(SERVERS, [])
    listed = {"serve": task_vars["serve"]} if task_vars.get("serve") is not None else {}
    return dict(plain({**given, "servers": [ours(host) for host in servers], **listed, **locked(task_vars)}))


def example(task_vars: Mapping[str, Any]) -> str:
    """The file that marks the inventory as an example, where it is one."""
    return f"{task_vars['inventory_dir']}/group_vars/all/cluster.yml" if task_vars.get("example") else ""


def listed(task_vars: Mapping[str, Any]) -> dict[str, Any] | None:
    """The inventory with its list of what is served, as `case.fleet` takes it; None where a site has one profile.

    `-e group=NAME -e profile=OTHER` is the list with another profile for one group.
    """
    if task_vars.get("serve") is None:
        return None
    serve, chosen = plain(task_vars["serve"]), task_vars.get("profile")
    if (group := task_vars.get("group")) and isinstance(serve, list):
        if not chosen:
            raise InputError.single("-e group", f"{group}: which profile? add -e profile=NAME", rule="missing-key")
        serve, chosen = planning.entry(serve, str(group), str(chosen)), None
    reached = {serving.GATEWAY: plain(task_vars[serving.GATEWAY])} if serving.GATEWAY in task_vars else {}
    return {**inventory(task_vars), "serve": serve, **reached, **({"profile": str(chosen)} if chosen else {})}


def lock_file(task_vars: Mapping[str, Any]) -> Path:
    """Where this site's images and models are locked: beside its inventory."""
    return locks.place(task_vars.get("inventory_dir") or WORK / "build")


def locked(task_vars: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """Read anew each time: a run that locks an image launches it, and Ansible read its variables before."""
    file = lock_file(task_vars)
    return {"images": locks.meanings(file, locks.Image), "models": locks.meanings(file, locks.Model)}


def registered(task_vars: Mapping[str, Any], name: str, *groups: str) -> dict[str, Any]:
    """What every host of the groups (the Sparks) registered under a name; one that registered nothing is left out."""
    hostvars = task_vars["hostvars"]
    hosts = dict.fromkeys(host for group in groups or (GROUP,) for host in task_vars["groups"].get(group, []))
    return {host: plain(hostvars[host][name]) for host in hosts if name in hostvars[host]}


def asked(task_vars: Mapping[str, Any]) -> set[str]:
    """The hosts of this play, reachable or not: with --limit only they are judged."""
    return set(task_vars.get("ansible_play_hosts_all") or task_vars["groups"][GROUP])


def guarded(work: Callable[[], Data]) -> Data:
    """The result of `work`, or a failure that says what to change; never a traceback for a person's mistake."""
    try:
        return {"changed": False, **work()}
    except InputError as error:
        return {"failed": True, "msg": str(error), "problems": [str(problem) for problem in error.problems]}
    except (smoke.NoAnswer, StoreError) as error:
        return {"failed": True, "msg": str(error)}
    except Refused as error:
        return {"failed": True, "msg": findings_text(error.findings), "findings": [f.as_dict() for f in error.findings]}
    except Exception as error:
        if told := patience.trouble(error) or full(error):
            return {"failed": True, "msg": told}
        raise


@dataclass(frozen=True)
class Context:
    """What a task sees: the inventory's variables, whether it is a dry run, and the node that it is about."""

    action: Any  # Ansible's
    vars: Data
    dry: bool

    @property
    def cluster(self) -> Cluster:
        return cluster(self.vars)

    @property
    def node(self) -> str:
        return str(self.vars["inventory_hostname"])

    def say(self, text: str, *, newline: bool = True) -> None:
        self.action._display.display(text, newline=newline)
        if newline and text.strip():
            up.tell("said", host=self.node, text=text.strip().splitlines()[-1])

    def role_file(self, name: str) -> str:
        """Of the role's `files`."""
        return Path(self.action._find_needle("files", name)).read_text()

    def execute(self, line: str, data: bytes | None) -> Data:
        """On the node: a line of its shell, with this on standard input."""
        return dict(self.action._low_level_execute_command(line, in_data=data))

    @property
    def extra_vars(self) -> Data:
        """What `-e` says."""
        from ansible.utils.vars import load_extra_vars

        return dict(load_extra_vars(self.action._loader))

    @property
    def environment(self) -> str:
        """What the task's `environment` says, as the shell takes it."""
        return str(self.action._compute_environment_string())

    @property
    def interpreter(self) -> str:
        """The node's Python that the inventory names, else the one that Ansible found; else PATH knows."""
        delegated = self.vars.get("ansible_delegated_vars") or {}
        known = delegated.get(self.action._task.delegate_to) or self.vars
        given = self.action._templar.template(known.get("ansible_python_interpreter") or "auto")
        found = (known.get("ansible_facts") or {}).get("discovered_interpreter_python", "python3")
        return shlex.quote(str(found if given.startswith("auto") else given))


def findings_text(findings: list[Finding]) -> str:
    return "\n".join(f"{f.severity}  {f.rule}  {f.where}: {f.message}\n      -> {f.fix}" for f in findings)
