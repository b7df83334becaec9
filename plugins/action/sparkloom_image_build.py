from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

from ansible.plugins.action import ActionBase

from sparkloom.base import files
from sparkloom.base.finding import errors
from sparkloom.base.repository import WORK, kept
from sparkloom.inputs import image_lock, image_recipes
from sparkloom.launch.downloads import Settings
from sparkloom.render import image_context, pack
from sparkloom.site import ansible, image_build

DOCUMENTATION = r"""
module: sparkloom_image_build
short_description: Decide about an image of ours, from its recipe and from what the nodes have
description: [Reads the recipe and what sparkloom_image answered; C(keep) writes the lock file beside the inventory.]
options:
  what:
    type: str
    required: true
    choices: [plan, decide, judge, chain, keep]
    description:
      - C(plan) reads the recipe and says what a node is told; C(decide) whether it must be built.
      - C(judge) refuses a node that has no room for the build; C(chain) says who hands the archive to whom.
      - C(keep) refuses nodes with different builds, and locks the digest that was built.
  recipe: {type: str, required: true, description: ["Its name, or the path of its file."]}
  node: {type: str, default: "", description: [Which Spark builds; the first one when empty.]}
  force: {type: bool, default: false, description: [Build although a base or a wheel is not pinned.]}
  beside: {type: bool, default: false, description: [Build on a node whose engine serves.]}
  again: {type: bool, default: false, description: [Build although a node has this build; with decide.]}
  runtimes: {type: list, elements: dict, default: [], description: ["Where containerd may be, as in model_serving."]}
  digest: {type: str, default: "", description: ["The build that was there before; with keep, unless it was made now."]}
  answers: {type: str, description: ["Variable that the nodes registered; with decide, judge, chain and keep."]}
  port: {type: int, default: 20900, description: [Where the nodes hand the archive on; with chain.]}
  connections: {type: int, default: 8, description: [Pieces that travel at once; with chain.]}
"""


class ActionModule(ansible.Action, ActionBase, documentation=DOCUMENTATION):
    required_if = tuple(("what", what, ("answers",)) for what in ("decide", "judge", "chain", "keep"))

    def work(self, args: ansible.Data, task_vars: ansible.Data) -> ansible.Data:
        loaded, cluster = image_recipes.load(args["recipe"]), ansible.cluster(task_vars)
        here = [node.name for node in cluster.nodes if node.name in ansible.asked(task_vars)]
        builder, file = image_build.builder(cluster, args["node"], here), ansible.lock_file(task_vars)
        if args["what"] == "plan":
            found = errors(image_build.findings(loaded))
            if found and not args["force"]:
                return {"failed": True, "msg": ansible.findings_text(found)}
            store = WORK / ".build" / "store"
            return {
                "asked": image_build.asked(loaded, beside=args["beside"], places=args["runtimes"]),
                "builder": builder,
                "file": image_build.archive(loaded),
                "models": image_build.wanted(loaded),
                "program": str(pack.program("images").keep(store)),
                "store": str(pack.program("weights").keep(store)),
                "way": image_build.way(cluster, [node for node in here if node != builder]),
            }
        registered = ansible.registered(task_vars, args["answers"])
        answers = {node: registered[node]["answer"] for node in here if "answer" in registered.get(node, {})}
        if args["what"] == "decide":
            entry = image_lock.read(file).get(loaded.recipe.image)
            decided = image_build.decide(loaded, answers, entry.digest if entry else "", again=args["again"])
            return {"build": decided.build, "digest": decided.digest, "pulls": decided.pulls, "msg": decided.told}
        if args["what"] == "judge":
            told = answers[builder]
            lines = [f"{builder}: {refusal}" for refusal in told["refusals"]]
            beside = f", beside {', '.join(told['serving'])}, which serves" if told["serving"] else ""
            return {"failed": bool(lines), "msg": "\n".join(lines) or f"{builder} builds, by {told['tool']}{beside}"}
        if args["what"] == "chain":
            order = [builder, *(node for node in here if node != builder)]
            settings = Settings(args["port"], args["connections"])
            specs = image_build.chain(cluster, loaded, order, answers, settings)
            return {"specs": specs, "head": next(iter(specs), "")}
        digest, refusal = image_build.settle(loaded, answers, args["digest"])
        if refusal:
            return {"failed": True, "msg": refusal}
        return _kept(loaded, builder, answers, digest, file, kept(cluster.name))


def _kept(
    loaded: image_recipes.LoadedRecipe,
    builder: str,
    answers: image_build.Answers,
    digest: str,
    file: Path,
    folder: Path,
) -> ansible.Data:
    when = datetime.now(UTC).isoformat(timespec="seconds")
    image, (name, tag) = loaded.recipe.image, loaded.recipe.name_and_tag
    changed = image_lock.keep(file, image_lock.Entry(name, tag, digest, when, builder))
    told = {"recipe": loaded.name, "image": image, "digest": digest, "nodes": list(answers), "node": builder}
    told |= {"recipe_sha256": image_context.of(loaded), "when": when, "lock": str(file)}
    files.write(folder / "images" / f"{loaded.name}.json", json.dumps(told, indent=2) + "\n")
    return {"changed": changed, "digest": digest, "msg": f"{image} is {digest} on {', '.join(answers)} ({file})"}
