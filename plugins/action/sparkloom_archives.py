from __future__ import annotations

from pathlib import Path

from ansible.plugins.action import ActionBase

from sparkloom import case
from sparkloom.base.repository import WORK
from sparkloom.inputs import profile
from sparkloom.inputs.inventory import GROUP, SERVERS
from sparkloom.launch import downloads
from sparkloom.render import pack
from sparkloom.render.k3s.machines import ARCHITECTURES
from sparkloom.render.k3s.options import options
from sparkloom.site import ansible, image_archives, images
from sparkloom.site.groups import observed
from sparkloom.site.k3s import needs

DOCUMENTATION = r"""
module: sparkloom_archives
short_description: Decide which archives of images are brought to which node
description: [Reads the folder C(images) of the release files; changes nothing.]
options:
  what:
    type: str
    required: true
    choices: [plan, decide]
    description:
      - C(plan) says which images nodes need that no registry of the site gives, and with what to ask for them.
      - C(decide) refuses images that are neither on the nodes nor in an archive.
  options: {type: dict, required: true, description: [The variables of role k3s.]}
  multus: {type: str, default: "", description: [Multus' image.]}
  gpu: {type: str, default: "", description: [The device plugin's.]}
  router: {type: str, default: "", description: ["The router's, where the site has one."]}
  profile: {type: str, default: "", description: [Whose engine's image; of a site with a list that of each group.]}
  nodes: {type: list, elements: str, default: [], description: [Who serves it; the first Sparks unless told.]}
  take: {type: str, default: "", description: [A digest instead of the locked one.]}
  answers: {type: str, description: ["Variable that the nodes registered from a look; with decide."]}
"""


class ActionModule(ansible.Action, ActionBase, documentation=DOCUMENTATION):
    required_if = (("what", "decide", ("answers",)),)

    def work(self, args: ansible.Data, task_vars: ansible.Data) -> ansible.Data:
        chosen, cluster = options(args["options"]), ansible.cluster(task_vars)
        engines = self._engines(args, task_vars)
        asked = needs.Asked(
            args["multus"], args["gpu"], args["router"], engines, args["take"], ansible.lock_file(task_vars)
        )
        needed = needs.every(chosen, cluster, asked)
        if args["what"] == "plan":
            program = str(pack.program("images").keep(WORK / ".build" / "store"))
            names = list(dict.fromkeys(need.image for need in needed))
            return {"program": program, "asked": {"images": names, "places": list(images.PLACES)}}
        answers = ansible.registered(task_vars, args["answers"], GROUP, SERVERS)
        # What a machine answered in an earlier play is of before its import.
        here = ansible.asked(task_vars)
        looked = {host: told["answer"] for host, told in answers.items() if "answer" in told and host in here}
        held = {host: told["images"] for host, told in looked.items()}
        machines = {host: ARCHITECTURES.get(told["machine"], told["machine"]) for host, told in looked.items()}
        folder = Path(chosen.artifacts).expanduser() / image_archives.FOLDER
        rows, brought = image_archives.decide(folder, image_archives.lacking(needed, held), machines)
        return ansible.verdict(rows, "") | {"brought": brought}

    def _engines(self, args: ansible.Data, task_vars: ansible.Data) -> list[needs.Engine]:
        """One profile, with `nodes` on those; else every group of the list."""
        cluster, listed = ansible.cluster(task_vars), ansible.listed(task_vars)
        if args["nodes"] or listed is None:
            loaded = profile.load(args["profile"]) if args["profile"] else None
            return [needs.Engine(loaded, args["nodes"] or downloads.nodes(loaded, cluster))] if loaded else []
        runs = observed.known(cluster)
        grouped = case.fleet(listed, runs=runs).grouped
        return [needs.Engine(one.need.loaded, list(one.group.nodes)) for one in grouped]
