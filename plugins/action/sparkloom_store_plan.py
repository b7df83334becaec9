from __future__ import annotations

import secrets
from datetime import UTC, datetime

from ansible.plugins.action import ActionBase

from sparkloom.base.repository import WORK
from sparkloom.inputs import profile
from sparkloom.launch import downloads
from sparkloom.render import pack
from sparkloom.site import ansible
from sparkloom.site.checks import serving
from sparkloom.site.store import answers as stores
from sparkloom.site.store import locking

DOCUMENTATION = r"""
module: sparkloom_store_plan
short_description: Plan which weights every node needs, and who hands them to whom
description: [Reads the profile and what sparkloom_store answered on the nodes.]
options:
  what:
    type: str
    required: true
    choices: [program, models, contents, judge, chain, keep, secret]
    description:
      - C(program) only makes the store's program; C(models) says what the profile needs, C(chain) who fetches it.
      - C(contents) compares what lies on the nodes, C(judge) refuses nodes where something is missing.
      - C(keep) locks the commits that were verified, beside the images' digests.
      - C(secret) makes what the nodes of one run prove to each other that they know; nothing keeps it.
  profile: {type: str, description: [Whose weights; with all but program and secret.]}
  nodes: {type: list, elements: str, default: [], description: [Who serves it; the first Sparks unless told.]}
  remove: {type: list, elements: str, default: [], description: [Models that are to go; with models.]}
  answers: {type: str, description: [Variable that the nodes registered from a list; with contents.]}
  checks: {type: str, description: ["Variable that the nodes registered from a check; with judge, chain and keep."]}
  fetched: {type: str, description: [Variable that the nodes registered from a fetch; with keep.]}
  accept:
    type: str
    default: ""
    choices: ["", locked, held, new]
    description: [Which commit holds where the nodes hold another than the locked one; new asks the hub again.]
  settings:
    type: dict
    description: [How they are fetched; with chain.]
    suboptions:
      endpoint: {type: str, required: true, description: [Another hub than the public one.]}
      plain_http: {type: list, elements: str, required: true, description: [Hosts that need not speak https.]}
      folder: {type: str, required: true, description: [A folder on the first node instead of a hub.]}
      update: {type: bool, required: true, description: [Ask the hub again where no revision is pinned.]}
      port: {type: int, required: true, description: [Where the nodes hand the weights on.]}
      connections: {type: int, required: true, description: [Files that travel at once.]}
"""
BUILD = WORK / ".build" / "store"


class ActionModule(ansible.Action, ActionBase, documentation=DOCUMENTATION):
    required_if = (
        ("what", "models", ("profile",)),
        ("what", "contents", ("profile", "answers")),
        ("what", "judge", ("profile", "checks")),
        ("what", "chain", ("profile", "checks", "settings")),
        ("what", "keep", ("profile", "checks", "fetched")),
    )

    def work(self, args: ansible.Data, task_vars: ansible.Data) -> ansible.Data:
        if args["what"] == "program":
            return {"program": str(pack.program("weights").keep(BUILD))}
        if args["what"] == "secret":
            return {"secret": secrets.token_hex(32)}
        cluster = ansible.cluster(task_vars)
        own = profile.load(args["profile"])
        lock = locking.Lock.of(own, ansible.lock_file(task_vars), args.get("accept", ""))
        loaded = lock.pinned(own)
        models, nodes = downloads.wanted(loaded), args.get("nodes") or downloads.nodes(loaded, cluster)
        if args["what"] == "contents":
            answers = ansible.registered(task_vars, args["answers"])
            return {"msg": downloads.contents(stores.held(list(answers), answers, ansible.asked(task_vars)))}
        if args["what"] == "models":
            downloads.removable(models, args["remove"])
            program = str(pack.program("weights").keep(BUILD))
            return {"models": models, "nodes": nodes, "store": cluster.model_store, "program": program}
        checks = ansible.registered(task_vars, args["checks"])
        if args["what"] == "judge":
            findings = serving.weights([node for node in nodes if node in ansible.asked(task_vars)], checks)
            verified = [node for node in nodes if node in ansible.asked(task_vars)]
            return ansible.verdict(list(findings), f"verified on {', '.join(verified)}")
        if args["what"] == "keep":
            return self._keep(lock, nodes, checks, ansible.registered(task_vars, args["fetched"]))
        settings = downloads.Settings(**{**args["settings"], "plain_http": tuple(args["settings"]["plain_http"])})
        held = stores.held(nodes, checks, ansible.asked(task_vars))
        if refusal := lock.drift(held):
            return {"failed": True, "msg": refusal}
        specs = downloads.chain(cluster, models, list(held), held, settings)
        hub = str(pack.client(BUILD)) if downloads.asks_hub(specs) else ""
        head = next(iter(specs), "")
        return {"specs": specs, "head": head, "client": hub, "msg": downloads.told(list(held), held, specs)}

    def _keep(
        self, lock: locking.Lock, nodes: list[str], checks: dict[str, ansible.Data], fetched: dict[str, ansible.Data]
    ) -> ansible.Data:
        found = {
            node: fetched.get(node, {}).get("commits") or downloads.commits(checks[node]["answer"])
            for node in nodes
            if "answer" in checks.get(node, {})
        }
        entries, refusal = lock.found(found, datetime.now(UTC).isoformat(timespec="seconds"))
        changed = not refusal and any(entries) and not self._task.check_mode and lock.keep(entries)
        told = ", ".join(f"{entry.id} is {entry.commit} ({lock.file})" for entry in entries)
        return {"failed": bool(refusal), "changed": bool(changed), "msg": refusal or told or "the profile pins it"}
