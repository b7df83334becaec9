from __future__ import annotations

from datetime import UTC, datetime

from ansible.plugins.action import ActionBase

from sparkloom.base.repository import WORK
from sparkloom.inputs import image_lock, profile
from sparkloom.launch import downloads, resolve
from sparkloom.render import pack
from sparkloom.site import ansible, images

DOCUMENTATION = r"""
module: sparkloom_images
short_description: Decide which image all nodes launch, and lock its digest
description: [Reads what sparkloom_image answered on the nodes; C(keep) writes the lock file beside the inventory.]
options:
  what:
    type: str
    required: true
    choices: [plan, decide, keep]
    description:
      - C(plan) says what to ask of whom; C(decide) who pulls what.
      - C(keep) refuses nodes that differ after the pulls, and locks the digest.
  profile: {type: str, required: true, description: [Whose image.]}
  nodes: {type: list, elements: str, default: [], description: [Who serves it; the first Sparks unless told.]}
  runtimes:
    type: list
    elements: dict
    default: []
    description: ["Where containerd may be: C(socket), C(root), and C(program) where one holds its tools; with plan."]
  take: {type: str, default: "", description: ["A digest instead of the locked one, or new."]}
  pull: {type: bool, default: true, description: [Whether a missing image is pulled; with decide.]}
  answers: {type: str, description: [Variable that the nodes registered from a look; with decide and keep.]}
  digest: {type: str, default: "", description: [What decide gave; with keep.]}
"""


class ActionModule(ansible.Action, ActionBase, documentation=DOCUMENTATION):
    required_if = (("what", "decide", ("answers",)), ("what", "keep", ("answers",)))

    def work(self, args: ansible.Data, task_vars: ansible.Data) -> ansible.Data:
        loaded, file = profile.load(args["profile"]), ansible.lock_file(task_vars)
        nodes = args["nodes"] or downloads.nodes(loaded, ansible.cluster(task_vars))
        image = resolve.image_reference(loaded)
        if args["what"] == "plan":
            program = str(pack.program("images").keep(WORK / ".build" / "store"))
            places = args["runtimes"] or list(images.PLACES)
            return {"nodes": nodes, "program": program, "asked": {"image": image, "places": places}}
        answers = ansible.registered(task_vars, args["answers"])
        held = {node: answers[node]["answer"] for node in nodes if "answer" in answers.get(node, {})}
        asked = images.wanted(image, image_lock.read(file), args["take"], str(file))
        if args["what"] == "decide":
            decided = images.decide(asked, held, may_pull=args["pull"])
            return {"digest": decided.digest, "pulls": decided.pulls} | _refused(decided, images.told(asked, decided))
        settled = images.settle(asked, images.Decision(args["digest"]), held)
        if settled.refusal or "@" in image:
            return {"digest": settled.digest} | _refused(settled, f"{image} on {', '.join(held)}")
        when = datetime.now(UTC).isoformat(timespec="seconds")
        changed = image_lock.keep(file, images.entry(asked, settled.digest, held, when))
        return {"changed": changed, "digest": settled.digest, "msg": f"{image} is {settled.digest} ({file})"}


def _refused(decided: images.Decision, passed: str) -> ansible.Data:
    return {"failed": bool(decided.refusal), "msg": decided.refusal or passed}
