"""An image of ours on every node: must it be built, where, who hands it to whom, and have all of them one build."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import Any

from sparkloom.base.errors import InputError
from sparkloom.base.finding import Finding
from sparkloom.inputs import image_recipes
from sparkloom.inputs.cluster import Cluster
from sparkloom.inputs.image_recipes import LoadedRecipe
from sparkloom.launch import downloads
from sparkloom.launch.downloads import Settings
from sparkloom.onnode.images import build, reference
from sparkloom.onnode.weights.layout import Store
from sparkloom.render import image_context
from sparkloom.render.k3s import paths
from sparkloom.site import images
from sparkloom.site.images import Decision

STORE, WORK = f"{paths.ARCHIVES}/store", f"{paths.ARCHIVES}/build"
Answers = Mapping[str, Mapping[str, Any]]  # node -> what `images built` answered of it


def findings(loaded: LoadedRecipe) -> list[Finding]:
    """What speaks against a recipe itself: errors for what its text does not fix, notes for what it says so of."""
    fix = "the digest, with where it was read; --force builds what the tag means on that day"
    loose = [(one, "image-recipe-unpinned", "error", fix) for one in image_recipes.unpinned(loaded.recipe)]
    notes = [
        (one, "image-recipe-moves", "info", f"the image has what it was in {image_context.NOTES}")
        for one in image_recipes.moving(loaded.recipe)
    ]
    return [
        Finding(loaded.document.where(one.loc), rule, one.message, "", advice, severity)  # type: ignore[arg-type]
        for one, rule, severity, advice in [*loose, *notes]
    ]


def asked(loaded: LoadedRecipe, *, beside: bool = False, places: Sequence[Mapping[str, Any]] = ()) -> dict[str, Any]:
    """All that a node's program is told of a build."""
    recipe = loaded.recipe
    context = image_context.context(loaded)
    return {
        "image": recipe.image,
        "identity": image_context.of(loaded),
        "model": model(loaded),
        "platform": recipe.platform,
        "epoch": recipe.epoch,
        "online": image_context.online(recipe),
        "context": {name: b64encode(content).decode() for name, content in sorted(context.items())},
        "disk_gb": recipe.needs.disk_gb,
        "memory_gib": recipe.needs.memory_gib,
        "places": list(places or images.PLACES),
        "store": STORE,
        "work": WORK,
        "beside": beside,
    }


def model(loaded: LoadedRecipe) -> str:
    """What the archive is called in the store by which nodes hand it on; two hyphens are a slash there."""
    return f"sparkloom-image/{loaded.name.replace('--', '-')}"


def archive(loaded: LoadedRecipe) -> str:
    return str(Store(STORE).link(model(loaded)) / build.ARCHIVE)


def builder(cluster: Cluster, wanted: str, here: Sequence[str]) -> str:
    """The node that builds: the one that is named, else the first of those that take part."""
    nodes = [node.name for node in cluster.nodes if node.name in here]
    if wanted and wanted not in nodes:
        message = f"image_build_node: '{wanted}' is none of the Sparks of this run; write one of {', '.join(nodes)}"
        raise InputError.single("image_build_node", message, rule="unknown-node")
    return wanted or nodes[0]


def decide(loaded: LoadedRecipe, answers: Answers, locked: str, *, again: bool) -> Decision:
    """Built already, from this very recipe? The locked one holds, else the first that a node has."""
    image, identity = loaded.recipe.image, image_context.of(loaded)
    ready = {node: str(told["tag"]) for node, told in answers.items() if told["tag"] and told["made_of"] == identity}
    if again or not ready:
        before = {node for node, told in answers.items() if told["tag"] and node not in ready}
        older = f"; {', '.join(sorted(before))}: one of an earlier recipe" if before else ""
        return Decision(build=True, note=f"{image} is built: {'asked for anew' if ready else 'no node has it'}{older}")
    digest = locked if locked in ready.values() else next(iter(ready.values()))
    named = reference.parse(image).at(digest)
    pulls = {node: named for node, told in answers.items() if digest not in told["digests"]}
    holder = next(node for node, held in ready.items() if held == digest)
    if not pulls:
        return Decision(digest=digest, note=f"{image} is on every node as {digest}; nothing to build")
    way = "from there by K3s' registry between the nodes, over the management network"
    told = f"{image} is on {holder} as {digest}; {', '.join(pulls)}: {way}"
    return Decision(digest=digest, pulls=pulls, note=told)


def chain(
    cluster: Cluster, loaded: LoadedRecipe, order: Sequence[str], checks: Mapping[str, Any], settings: Settings
) -> dict[str, dict[str, Any]]:
    """Who hands the archive to whom, as weights go: node to node over the rails, every byte hashed on each."""
    specs = downloads.chain(cluster, wanted(loaded), order, checks, settings)
    return {node: {**spec, "store": STORE} for node, spec in specs.items()}


def wanted(loaded: LoadedRecipe, revision: str | None = None) -> list[dict[str, Any]]:
    return [{"id": model(loaded), "revision": revision, "include": [build.ARCHIVE], "exclude": []}]


def way(cluster: Cluster, others: Sequence[str]) -> str:
    """By which way the archive went, for a person."""
    if not others:
        return "one node, nothing to hand on"
    return "over the rails" if cluster.fabric.rails else "over the management network (there are no rails)"


def settle(loaded: LoadedRecipe, answers: Answers, digest: str) -> tuple[str, str]:
    """Afterwards: the one digest that all nodes have, or why not. After a build nobody knew it before."""
    image, tags = loaded.recipe.image, {node: str(told["tag"]) for node, told in answers.items()}
    if not digest and len(set(tags.values())) > 1:
        each = "; ".join(f"{tag or 'nothing'} on {node}" for node, tag in tags.items())
        return "", f"{image} is not the same build on every node: {each}. -e image_build_again=true builds it for all"
    digest = digest or next(iter(tags.values()))
    lacking = [node for node, told in answers.items() if not digest or digest not in told["digests"]]
    if lacking:
        return "", f"{image} {digest} is missing on {', '.join(lacking)} after all; run this again"
    return digest, ""
