"""An image that no registry gives to a stranger: a local name, or one that its owner keeps for himself."""

from __future__ import annotations

import re

from sparkloom.inputs.image_recipes import HOST
from sparkloom.judge.rules.base import Hit, Hits, LaunchView, Rule, Scope, Source, case
from sparkloom.onnode.images.reference import parse

# One word alone would be of the registry's own library (`python:3.12`), where no engine is published.
LOCAL = re.compile(rf"^(localhost(:\d+)?|127\.[\d.]+(:\d+)?|docker\.io/library|{re.escape(HOST)})/")
# Published names that ask for their owner's login: image, who says so.
WITHHELD = {
    r"^docker\.io/blivioniag/": "the recipe that names it: 'the patched image is private, docker login required'",
    r"^docker\.io/library/vllm-dspark-runtime$": "pull request 311 of eugr/spark-vllm-docker",
}


class ImageNobodyHas(Rule):
    id = "image-nobody-has"
    severity = "warning"
    scope = Scope(engine="*")
    why = (
        "K3s pulls it on every node. A name that exists only on its owner's machine, or that needs the "
        "owner's login, ends in ImagePullBackOff after the weights were fetched"
    )
    fix = (
        "engine.image: one that everybody can pull; or one that is built: by a recipe of ours (engine.recipe, "
        "`sparkloom image build`), or by somebody's (engine.built_from), imported on each node"
    )
    evidence = (
        Source("eugr/spark-vllm-docker: its recipes name vllm-node, which build-and-copy.sh makes", "2026"),
        Source("tonyd2wild, MiniMax-M3-AWQ on four Sparks: docker commit on each node", "2026-07"),
        Source("blivioniag, DeepSeek-V4-Flash on two Sparks: a private image", "2026-09"),
    )
    predicts_failure = False  # on the machine of who wrote the recipe it runs
    failing = case(engine="vllm", release="0.32.0", image="vllm-node-b12x")
    passing = case(
        engine="vllm", release="0.32.0", image="vllm-node-b12x", built_from="eugr/spark-vllm-docker, --exp-b12x"
    )

    def check(self, view: LaunchView) -> Hits:
        if not view.image or view.built_from:
            return
        name = parse(view.image).name
        owner = next((said for pattern, said in WITHHELD.items() if re.search(pattern, name)), "")
        if owner:
            yield Hit(f"image {view.image} is its owner's alone ({owner})", "engine.image")
        elif LOCAL.match(name):
            yield Hit(f"image {view.image} is a name on somebody's own machine, no registry's", "engine.image")
