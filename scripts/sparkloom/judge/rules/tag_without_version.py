"""A tag that says no release, date or commit can be pushed again under the same name."""

from __future__ import annotations

import re

from sparkloom.judge.rules.base import Hit, Hits, LaunchView, Rule, Scope, Source, case
from sparkloom.judge.rules.moving_tag import MOVES
from sparkloom.onnode.images.reference import parse

# 0.5.12, v8, v0; 20260609; b8399; a commit of seven digits and more that has both letters and figures.
FIXED = re.compile(r"\d+\.\d+|(^|[-_.])[vb]\d+|20\d{6}|(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])(?<![0-9a-z])[0-9a-f]{7,40}")


class TagWithoutVersion(Rule):
    id = "tag-without-version"
    severity = "info"
    scope = Scope(engine="*")
    why = (
        "previews of a model are published under the model's name and pushed again until a release has it: what was "
        "measured last month may not be what is pulled today"
    )
    fix = "engine.digest: the digest that was measured (resolved and pinned at deploy when empty)"
    evidence = (
        Source("sgl-project/sglang 37479: lmsysorg/sglang:dev-v4f-2dgx, a preview until a release has it", "2026-09"),
        Source("hasso5703/dgx-spark-qwen38 pins lmsysorg/sglang:qwen38-27b by digest for this reason", "2026-08"),
    )
    predicts_failure = False
    failing = case(image="lmsysorg/sglang:dev-qwen38-next-local")
    passing = case(image="ghcr.io/tonyd2wild/vllm-glm53-flash:sm121-v11-dflash2")

    def check(self, view: LaunchView) -> Hits:
        tag = parse(view.image).tag if view.image else ""
        if tag and "@" not in view.image and not view.built_from and not MOVES.search(tag) and not FIXED.search(tag):
            yield Hit(f"tag {tag} of {view.image} names no release, date or commit", "engine.image")
