"""A moving tag serves another engine tomorrow."""

from __future__ import annotations

import re
from collections.abc import Iterable

from sparkloom.judge.rules.base import Context, Hit, Rule, Scope, Source
from sparkloom.judge.rules.sources import GUIDE


class MovingTag(Rule):
    id = "moving-tag"
    severity = "warning"
    scope = Scope(engine="*")
    why = (
        "rules, flags and kernels are keyed by release; nightly and latest change under a profile, and a "
        "node's registry mirror never shares latest"
    )
    fix = "engine.digest: the digest that was measured (resolved and pinned at deploy when empty)"
    evidence = (GUIDE, Source("eugr/spark-vllm-docker issue 334", "2026"))
    failing = Context(image="vllm/vllm-openai:cu130-nightly")
    passing = Context(image="vllm/vllm-openai:cu130-nightly@sha256:0")

    def check(self, ctx: Context) -> Iterable[Hit]:
        tag = ctx.image.split("/")[-1].partition(":")[2]
        if ctx.image and "@" not in ctx.image and (not tag or re.search(r"latest|nightly|main$", tag)):
            yield Hit(f"image {ctx.image} has no fixed tag", "image")
