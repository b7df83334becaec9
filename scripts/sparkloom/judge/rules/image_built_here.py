"""An image that is built, not pulled: said, so that nobody learns it from a pod that cannot pull."""

from __future__ import annotations

from sparkloom.inputs.image_recipes import HOST
from sparkloom.judge.rules.base import Hit, Hits, LaunchView, Rule, Scope, Source, case


class ImageBuiltHere(Rule):
    id = "image-built-here"
    severity = "info"
    scope = Scope(engine="*")
    why = (
        "no registry has it under this name: whoever serves this profile builds it first and imports it on every node, "
        "and two builds of one recipe are two images"
    )
    fix = (
        "engine.recipe: `sparkloom image build` makes it on one Spark for all. Somebody's recipe: build it on one, "
        "`k3s ctr images import` on each; engine.digest: what was built"
    )
    evidence = (Source("docs/images.md", "2026"),)
    predicts_failure = False
    failing = case(image=f"{HOST}/llama.cpp:b8399-sm121", built_from="recipe llama.cpp-b8399")
    passing = case(image="vllm/vllm-openai:v0.33.0")

    def check(self, view: LaunchView) -> Hits:
        if view.built_from:
            yield Hit(f"image {view.image} is built from {view.built_from}", "engine.built_from")
