"""A moving tag serves another engine tomorrow."""

import re

from sparkloom.judge.rules.base import Hit, Hits, LaunchView, Rule, Scope, Source, case
from sparkloom.judge.rules.sources import NAMED

MOVES = re.compile(r"latest|nightly(?!.*[0-9a-f]{7})|main$|^(dev|edge|stable)$")  # a nightly with its commit stays


class MovingTag(Rule):
    id = "moving-tag"
    severity = "warning"
    scope = Scope(engine="*")
    why = (
        "rules, flags and kernels are keyed by release; nightly and latest change under a profile, and a "
        "node's registry mirror never shares latest"
    )
    fix = "engine.digest: the digest that was measured (resolved and pinned at deploy when empty)"
    evidence = (NAMED["guide"], Source("eugr/spark-vllm-docker issue 334", "2026"))
    failing = case(image="vllm/vllm-openai:cu130-nightly")
    passing = case(image="vllm/vllm-openai:cu130-nightly@sha256:0")

    def check(self, view: LaunchView) -> Hits:
        tag = view.image.split("/")[-1].partition(":")[2]
        if view.image and "@" not in view.image and not view.built_from and (not tag or MOVES.search(tag)):
            yield Hit(f"image {view.image} has no fixed tag", "image")
