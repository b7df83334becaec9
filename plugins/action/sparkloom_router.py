from __future__ import annotations

from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

from sparkloom.base.errors import InputError
from sparkloom.base.repository import WORK, place
from sparkloom.inputs import client_keys, serving
from sparkloom.render import keys
from sparkloom.render.manifests import router as objects
from sparkloom.render.router import Terms
from sparkloom.site import ansible, client, router, usage
from sparkloom.site.checks import report
from sparkloom.site.groups import observed

DOCUMENTATION = r"""
module: sparkloom_router
short_description: Give the router of the site's models its files
description:
  - Makes the Secret with all files of the router, has a router that runs go by it, and plans its objects.
  - Keys and hashes are in no result and in no log. A relative file of this machine starts at the repository.
options:
  image: {type: str, required: true, description: ["Envoy's image."]}
  memory: {type: int, required: true, description: [MiB that its pod may take.]}
  timeout: {type: int, required: true, description: [Seconds that an answer may say nothing.]}
  paths:
    type: list
    required: true
    elements: str
    description: ["What clients may ask for; * at the end is a model's name."]
  body_megabytes: {type: int, required: true, description: [How long a request may be.]}
  profile: {type: str, description: [What is served where the inventory has no list.]}
  key_file: {type: path, required: true, description: [File with the site's own key.]}
"""


class ActionModule(ansible.Action, ActionBase, documentation=DOCUMENTATION):
    def work(self, args: ansible.Data, task_vars: ansible.Data) -> ansible.Data:
        dry = bool(self._task.check_mode)
        if not args["image"]:
            message = "nothing says which image; expected Envoy's, as in inventories/gb10 (group_vars/all/versions.yml)"
            raise InputError.single("gateway_router_image", message, rule="missing-key")
        cluster = ansible.cluster(task_vars)
        reached = client.of(cluster)
        listed = serving.from_vars(said(args, task_vars), cluster)
        runs = observed.running(cluster)
        found = router.models(listed, cluster, runs)
        asleep = {name for name, one in runs.items() if not one.awake}
        page = reached.has_service(objects.PAGE)
        terms = Terms(
            paths=tuple(args["paths"]),
            megabytes=args["body_megabytes"],
            timeout=args["timeout"],
            memory=args["memory"],
            page=f"{objects.PAGE}.{cluster.namespace}.svc.cluster.local:{objects.PAGE_PORT}" if page else "",
        )
        listed_keys = client_keys.place(task_vars.get("inventory_dir") or WORK / "build")
        known = router.known_keys(listed_keys)
        own, made = keys.ensure(place(args["key_file"]), dry=dry)
        content = router.files(
            found, router.engine_keys(reached, found), [*known, router.owner(own)], terms, cluster.namespace
        )
        there = reached.secret(objects.NAME) is not None
        if not dry:
            usage.note(reached)
        given = router.give(reached, content, Display().display, dry=dry)
        if not dry and router.known_keys(listed_keys) != known:  # somebody added or took one meanwhile
            given = router.push(reached, listed_keys, Display().display) or given
        wanted = objects.Wanted(args["image"], terms, tuple(sorted({one.port for one in found} - {0})), page)
        effective = "" if given.seconds is None else f", which it goes by after {given.seconds:.1f} s"
        told = f"{len(known) + 1} keys and {len(found)} models for the router{effective}"
        return {
            "changed": made or given.changed,
            "drift": report.secret(objects.NAME, there=there, differs=given.changed, expected="the router's files"),
            "objects": objects.router(wanted, cluster, content),
            "names": [one.name for one in found if one.secret and one.name not in asleep],
            "asleep": sorted(asleep),
            "msg": told,
        }


def said(args: ansible.Data, task_vars: ansible.Data) -> ansible.Data:
    """The inventory's list, else the one profile."""
    return ansible.listed(task_vars) or {"profile": args.get("profile") or None}
