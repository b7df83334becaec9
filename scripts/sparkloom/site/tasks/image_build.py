"""An image of ours, decided about from its recipe and from what the nodes have."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime

from sparkloom.base import files
from sparkloom.base.finding import errors
from sparkloom.base.repository import kept
from sparkloom.inputs import image_recipes, lock_file
from sparkloom.launch.downloads import Settings
from sparkloom.render import image_context
from sparkloom.site import ansible, image_build
from sparkloom.site.ansible import Context, Data


def plan(
    context: Context,
    recipe: str,  # its name, or the path of its file
    node: str = "",  # which Spark builds; the first one when empty
    force: bool = False,  # build although a base or a wheel is not pinned
    beside: bool = False,  # build on a node whose engine serves
    runtimes: Sequence[Data] = (),  # where containerd may be, as in model_serving
) -> Data:
    """What the recipe says, and what a node is told."""
    loaded, here = image_recipes.load(recipe), _here(context)
    builder = image_build.builder(context.cluster, node, here)
    found = errors(image_build.findings(loaded))
    if found and not force:
        return {"failed": True, "msg": ansible.findings_text(found)}
    return {
        "asked": image_build.asked(loaded, beside=beside, places=list(runtimes)),
        "builder": builder,
        "file": image_build.archive(loaded),
        "models": image_build.wanted(loaded),
        "way": image_build.way(context.cluster, [other for other in here if other != builder]),
    }


def decide(
    context: Context,
    recipe: str,
    answers: str,  # variable that the nodes registered from `image.ask`
    again: bool = False,  # build although a node has this build
) -> Data:
    """Whether it must be built."""
    loaded = image_recipes.load(recipe)
    entry = lock_file.read(ansible.lock_file(context.vars), lock_file.Image).get(loaded.recipe.image)
    decided = image_build.decide(loaded, _answers(context, answers), entry.digest if entry else "", again=again)
    return {"build": decided.build, "digest": decided.digest, "pulls": decided.pulls, "msg": decided.note}


def judge(
    context: Context,
    answers: str,  # variable that the builder registered from `image.ask`
    node: str = "",
) -> Data:
    """Refuses a node that has no room for the build."""
    builder = image_build.builder(context.cluster, node, _here(context))
    told = _answers(context, answers)[builder]
    lines = [f"{builder}: {refusal}" for refusal in told["refusals"]]
    beside = f", beside {', '.join(told['serving'])}, which serves" if told["serving"] else ""
    return {"failed": bool(lines), "msg": "\n".join(lines) or f"{builder} builds, by {told['tool']}{beside}"}


def chain(
    context: Context,
    recipe: str,
    answers: str,  # variable that the nodes registered from `store.check`
    node: str = "",
    port: int = 20900,  # where the nodes hand the archive on
    connections: int = 8,  # pieces that travel at once
) -> Data:
    """Who hands the archive to whom."""
    loaded, cluster, here = image_recipes.load(recipe), context.cluster, _here(context)
    builder = image_build.builder(cluster, node, here)
    order = [builder, *(other for other in here if other != builder)]
    specs = image_build.chain(cluster, loaded, order, _answers(context, answers), Settings(port, connections))
    return {"specs": specs, "head": next(iter(specs), "")}


def keep(
    context: Context,
    recipe: str,
    answers: str,  # variable that the nodes registered from `image.ask`
    node: str = "",
    digest: str = "",  # the build that was there before, unless it was made now
) -> Data:
    """Refuses nodes with different builds, and locks the digest that was built, beside the inventory."""
    loaded, cluster = image_recipes.load(recipe), context.cluster
    held, file = _answers(context, answers), ansible.lock_file(context.vars)
    settled, refusal = image_build.settle(loaded, held, digest)
    if refusal:
        return {"failed": True, "msg": refusal}
    when, builder = datetime.now(UTC).isoformat(timespec="seconds"), image_build.builder(cluster, node, _here(context))
    image, (name, tag) = loaded.recipe.image, loaded.recipe.name_and_tag
    changed = lock_file.keep(file, lock_file.Image(name, tag, settled, when, builder))
    told = {"recipe": loaded.name, "image": image, "digest": settled, "nodes": list(held), "node": builder}
    told |= {"recipe_sha256": image_context.of(loaded), "when": when, "lock": str(file)}
    files.write(kept(cluster.name) / "images" / f"{loaded.name}.json", json.dumps(told, indent=2) + "\n")
    return {"changed": changed, "digest": settled, "msg": f"{image} is {settled} on {', '.join(held)} ({file})"}


def _here(context: Context) -> list[str]:
    asked = ansible.asked(context.vars)
    return [node.name for node in context.cluster.nodes if node.name in asked]


def _answers(context: Context, name: str) -> image_build.Answers:
    registered = ansible.registered(context.vars, name)
    return {node: registered[node]["answer"] for node in _here(context) if "answer" in registered.get(node, {})}
