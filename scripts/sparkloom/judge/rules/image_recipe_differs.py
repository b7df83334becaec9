"""A recipe of ours that builds another image than the one that its profile launches."""

from __future__ import annotations

from sparkloom.inputs.image_recipes import HOST, Base, Needs, Recipe, Serves
from sparkloom.judge.rules.base import Hit, Hits, LaunchView, Rule, Scope, Source, case
from sparkloom.onnode.images.reference import parse


def _recipe(release: str) -> Recipe:
    return Recipe(
        summary="the engine as one example has it",
        image=f"{HOST}/vllm:1",
        serves=Serves(engine="vllm", release=release),
        epoch=0,
        base=Base(image="scratch"),
        needs=Needs(disk_gb=1, memory_gib=1),
        sources=["made up"],
    )


class ImageRecipeDiffers(Rule):
    id = "image-recipe-differs"
    severity = "error"
    scope = Scope(engine="*")
    why = (
        "flags and rules are judged for the profile's release. An image of another release refuses them after"
        " the weights were read; an image under another name is never pulled"
    )
    fix = "the same engine, release and image in both: serves and image of the recipe, engine.release and engine.image"
    evidence = (Source("docs/images.md", "2026"),)
    predicts_failure = False
    failing = case(engine="vllm", release="0.32.0", image=f"{HOST}/vllm:1", recipe=_recipe("0.30.0"))
    passing = case(engine="vllm", release="0.32.0", image=f"{HOST}/vllm:1", recipe=_recipe("0.32.0"))

    def check(self, view: LaunchView) -> Hits:
        recipe = view.recipe
        if recipe is None:
            return
        if (recipe.serves.engine, recipe.serves.release) != (view.engine, view.release):
            yield Hit(
                f"its recipe builds {recipe.serves.engine} {recipe.serves.release}, launched is {view.engine} "
                f"{view.release}",
                "engine.release",
            )
        if view.image and parse(view.image).tagged != parse(recipe.image).tagged:
            yield Hit(f"its recipe builds {recipe.image}, launched is {view.image}", "engine.image")
