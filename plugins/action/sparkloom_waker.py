from __future__ import annotations

from ansible.plugins.action import ActionBase

from sparkloom.base.errors import InputError
from sparkloom.inputs import serving
from sparkloom.render.manifests import waker as objects
from sparkloom.site import ansible, client, waker
from sparkloom.site.groups import observed

DOCUMENTATION = r"""
module: sparkloom_waker
short_description: Plan what starts groups that are on demand, or take it away
description: ["Which groups are on demand says the inventory's list, and which are set up the cluster."]
options:
  what:
    type: str
    required: true
    choices: [give, remove]
    description:
      - C(give) plans its objects; there are none where no group that is set up is on demand.
      - C(remove) takes away one that this site needs no more.
  image: {type: str, description: ["An image with Python; with give."]}
"""


class ActionModule(ansible.Action, ActionBase, documentation=DOCUMENTATION):
    required_if = (("what", "give", ("image",)),)

    def work(self, args: ansible.Data, task_vars: ansible.Data) -> ansible.Data:
        cluster = ansible.cluster(task_vars)
        reached = client.of(cluster)
        told = ansible.listed(task_vars)
        listed = serving.from_vars(told, cluster) if told else None
        demanded = listed if listed and listed.demanded else None  # a list without such groups costs no question
        runs = observed.running(cluster) if demanded else {}
        found = waker.groups(demanded, cluster, runs) if demanded else []
        if args["what"] == "remove":
            gone = [] if found else waker.take_away(reached, dry=bool(self._task.check_mode))
            left = [{"what": what, "found": "left over", "expected": "nothing"} for what in gone]
            return {"changed": bool(gone), "drift": left, "msg": ", ".join(gone) or "nothing is left over"}
        if not found:
            return {"objects": [], "msg": "no group is on demand"}
        if not args["image"]:
            message = "nothing says which image; expected one with Python, as page_image in inventories/gb10 has it"
            raise InputError.single("gateway_waker_image", message, rule="missing-key")
        found = waker.timed(reached, found, runs)
        planned = objects.waker(args["image"], cluster, found, reached.api_addresses())
        return {"objects": planned, "msg": f"on demand: {', '.join(group.name for group in found)}"}
