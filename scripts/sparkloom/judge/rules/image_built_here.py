"""An image that is built, not pulled: said, so that nobody learns it from a pod that cannot pull."""

from __future__ import annotations

from sparkloom.judge.rules.base import Hit, Hits, LaunchView, Rule, Scope, Source, case


class ImageBuiltHere(Rule):
    id = "image-built-here"
    severity = "info"
    scope = Scope(engine="*")
    why = (
        "no registry has it under this name: whoever serves this profile builds it first and imports it on every node, "
        "and two builds of one recipe are two images"
    )
    fix = "docker build and docker save on one Spark, `k3s ctr images import` on each; engine.digest: what was built"
    evidence = (Source("docs/llamacpp.md, where this is done for llama.cpp", "2026"),)
    predicts_failure = False
    failing = case(image="localhost/sparkloom/llama.cpp:b8399-sm121", built_from="docs/llamacpp.md")
    passing = case(image="vllm/vllm-openai:v0.33.0")

    def check(self, view: LaunchView) -> Hits:
        if view.built_from:
            yield Hit(f"image {view.image} is built from {view.built_from}", "engine.built_from")
