"""What the Sparks say of themselves where the cluster's API does not answer, and what none of them knows."""

from __future__ import annotations

import contextlib
import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from sparkloom import case
from sparkloom.base.errors import InputError
from sparkloom.base.repository import WORK
from sparkloom.inputs import known_hosts
from sparkloom.inputs.inventory import GROUP, folder_of
from sparkloom.site import identity
from sparkloom.site.checks.report import unreached
from sparkloom.site.play import environment, program

SECONDS = 60  # for all of them; who is away is known after five
UNKNOWN = "not known without the API: which groups should run, sleep or are stopped, and which nodes are Ready"
Data = dict[str, Any]


def look(error: InputError, inventory: Path | None, **asked: Any) -> Data:
    """Of a cluster that does not answer; raised again where it was something else, or no Spark answers either."""
    (problem, *_) = error.problems
    if problem.rule != "no-cluster" or inventory is None:
        raise error
    cluster = case.cluster(inventory)
    answers = _answers(inventory, {"do": "without_api", "namespace": cluster.namespace, **asked})
    nodes = {node.name: _lines(node.name, answers.get(node.name, {})) for node in cluster.nodes}
    if not any("told" in answer for answer in answers.values()):
        why = "; ".join(f"{name} {said}" for name, (said, *_) in nodes.items())
        raise InputError([problem._replace(message=f"{problem.message}. No Spark tells either: {why}")])
    return {"site": cluster.name, "serving": None, "api": problem.message, "nodes": nodes, "unknown": UNKNOWN}


def _answers(inventory: Path, args: Data) -> Data:
    """By host what a task of nodes gave, as Ansible reaches each; of who is too late, or another machine, nothing."""
    site = folder_of(inventory)
    strict = {name: identity.strict(site, name) for name in known_hosts.read(site)}
    only = {"ansible_ssh_args": "{{ __strict[inventory_hostname] | default('') }}", "__strict": strict}
    command = [program("ansible"), GROUP, "-i", str(inventory.resolve()), "-b", "-m", "sparkloom_node"]
    with tempfile.TemporaryDirectory() as folder:
        env = environment(
            ANSIBLE_LOAD_CALLBACK_PLUGINS="1",
            ANSIBLE_CALLBACKS_ENABLED="ansible.builtin.tree,sparkloom_once",
            ANSIBLE_CALLBACK_TREE_DIR=folder,
            ANSIBLE_TIMEOUT="5",
            ANSIBLE_SSH_RETRIES="0",
        )
        with contextlib.suppress(subprocess.TimeoutExpired):
            asked = [*command, "-e", json.dumps(only), "-a", json.dumps(args)]
            subprocess.run(asked, cwd=WORK, env=env, capture_output=True, timeout=SECONDS)
        return {file.name: json.loads(file.read_text()) for file in Path(folder).iterdir()}


def _lines(name: str, answer: Data) -> list[str]:
    said = " ".join(str(answer.get("msg", "gave no answer in time")).split())
    away = unreached(name, said)
    return list(answer.get("told") or [away.message, away.fix])


def text(shown: Data) -> str:
    told = [line for name, said in shown["nodes"].items() for line in (name, *(f"  {one}" for one in said))]
    return "\n".join([f"{shown['site']}: {shown['api']}", "So this is what each Spark says:", *told, shown["unknown"]])
