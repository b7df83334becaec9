"""A recipe of ours whose base or wheels are not fixed by their content."""

from __future__ import annotations

from dataclasses import replace

from sparkloom.inputs import image_recipes
from sparkloom.inputs.image_recipes import HOST, Base, Needs, Recipe, Serves
from sparkloom.judge.rules.base import Hit, Hits, LaunchView, Rule, Scope, Source, case

LOOSE = Recipe(
    summary="an engine on a base that a tag alone names",
    image=f"{HOST}/vllm:1",
    serves=Serves(engine="vllm", release="0.32.0"),
    epoch=0,
    base=Base(image="docker.io/nvidia/cuda:13.0.2-runtime-ubuntu24.04"),
    needs=Needs(disk_gb=1, memory_gib=1),
    sources=["made up"],
)
CASE = case(engine="vllm", release="0.32.0", image=LOOSE.image)


class ImageRecipeUnpinned(Rule):
    id = "image-recipe-unpinned"
    severity = "warning"
    scope = Scope(engine="*")
    why = (
        "a tag or a version without a digest can be another file at the next build, so measurements of one "
        "image say nothing about the next"
    )
    fix = "the digest or sha256 in the recipe, with its source; `sparkloom image show NAME` names the places"
    evidence = (Source("docs/images.md", "2026"),)
    predicts_failure = False
    failing = replace(CASE, recipe=LOOSE)
    passing = replace(CASE, recipe=LOOSE.model_copy(update={"base": Base(image="scratch")}))

    def check(self, view: LaunchView) -> Hits:
        for loose in image_recipes.unpinned(view.recipe) if view.recipe else ():
            yield Hit(f"the recipe of {view.image}: {loose.message}", "engine.recipe")
