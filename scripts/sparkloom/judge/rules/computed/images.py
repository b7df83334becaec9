"""Images: who has them, what their name and their recipe say, and what is in them."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

from sparkloom.base import document
from sparkloom.inputs import image_recipes
from sparkloom.judge.rules.base import Hit, Hits, LaunchView, within
from sparkloom.launch import patches
from sparkloom.launch.engines.base import LOAD_FORMATS
from sparkloom.onnode.images.reference import parse

# One word alone would be of the registry's own library (`python:3.12`), where no engine is published.
LOCAL = re.compile(rf"^(localhost(:\d+)?|127\.[\d.]+(:\d+)?|docker\.io/library|{re.escape(image_recipes.HOST)})/")
# Published names that ask for their owner's login: image, who says so.
WITHHELD = {
    r"^docker\.io/blivioniag/": "the recipe that names it: 'the patched image is private, docker login required'",
    r"^docker\.io/library/vllm-dspark-runtime$": "pull request 311 of eugr/spark-vllm-docker",
}
MOVES = re.compile(r"latest|nightly(?!.*[0-9a-f]{7})|main$|^(dev|edge|stable)$")  # a nightly with its commit stays
# 0.5.12, v8, v0; 20260609; b8399; a commit of seven digits and more that has both letters and figures.
FIXED = re.compile(r"\d+\.\d+|(^|[-_.])[vb]\d+|20\d{6}|(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])(?<![0-9a-z])[0-9a-f]{7,40}")
PACKAGES = Path(__file__).parents[2] / "data" / "image_packages.yml"
FAST = "fastsafetensors"


def image_nobody_has(view: LaunchView) -> Hits:
    if not view.image or view.built_from:
        return
    name = parse(view.image).name
    owner = next((said for pattern, said in WITHHELD.items() if re.search(pattern, name)), "")
    if owner:
        yield Hit(f"image {view.image} is not public ({owner})", "engine.image")
    elif LOCAL.match(name):
        yield Hit(f"image {view.image} exists only on its owner's machine, in no registry", "engine.image")


def image_recipe_differs(view: LaunchView) -> Hits:
    recipe = view.recipe
    if recipe is None:
        return
    builds = f"{recipe.serves.engine} {recipe.serves.release}"
    if builds != (launched := f"{view.engine} {view.release}"):
        yield Hit(f"its recipe builds {builds}, but the profile launches {launched}", "engine.release")
    if view.image and parse(view.image).tagged != parse(recipe.image).tagged:
        yield Hit(f"its recipe builds {recipe.image}, but the profile launches {view.image}", "engine.image")


def image_recipe_unpinned(view: LaunchView) -> Hits:
    for loose in image_recipes.unpinned(view.recipe) if view.recipe else ():
        yield Hit(f"the recipe of {view.image}: {loose.message}", "engine.recipe")


def moving_tag(view: LaunchView) -> Hits:
    tag = view.image.split("/")[-1].partition(":")[2]
    if view.image and "@" not in view.image and not view.built_from and (not tag or MOVES.search(tag)):
        yield Hit(f"image {view.image} has no fixed tag", "image")


def tag_without_version(view: LaunchView) -> Hits:
    tag = parse(view.image).tag if view.image else ""
    if tag and "@" not in view.image and not view.built_from and not MOVES.search(tag) and not FIXED.search(tag):
        yield Hit(f"tag {tag} of {view.image} names no release, date or commit", "engine.image")


def patch_without_data(view: LaunchView) -> Hits:
    asked = sorted(name.removeprefix("patch:") for name in view.carries if name.startswith("patch:"))
    for name in () if view.partial else asked:
        if name not in patches.names():
            yield Hit(f"no data for patch {name}; known patches are {', '.join(patches.names())}", "engine.patches")
        elif (patch := patches.load(name)).package == view.engine and view.release not in patch.releases:
            written = f"patch {name} is written for {patch.package} {', '.join(patch.releases)}"
            yield Hit(f"{written}, not {view.release}", "engine.patches")


def fastsafetensors_missing(view: LaunchView) -> Hits:
    for flag in LOAD_FORMATS:
        if view.flag(flag) != FAST:
            continue
        told = known(FAST, view)
        if told and not told["carried"]:
            yield Hit(f"{flag} is {FAST}, and {view.image} does not have that package", flag)


@cache
def packages() -> dict[str, list[dict[str, Any]]]:
    """Package that a flag needs -> what is known of published images, in order."""
    every: dict[str, list[dict[str, Any]]] = document.own(PACKAGES.read_text(encoding="utf-8"))
    return every


def known(package: str, view: LaunchView) -> dict[str, Any] | None:
    """The entry about a launch's image; None where nobody looked."""
    for entry in packages().get(package, ()):
        held = not entry.get("releases") or within(view.release, entry["releases"])
        if held and re.search(entry["image"], view.image):
            return entry
    return None
