"""FlashInfer's CUTLASS and CuTe DSL MoE split experts over all ranks or over none."""

from __future__ import annotations

from collections.abc import Iterable

from sparkloom.judge.rules.base import Context, Hit, Rule, Scope
from sparkloom.judge.rules.sources import code


class MoeEpAllOrNone(Rule):
    id = "moe-ep-all-or-none"
    severity = "error"
    scope = Scope(engine="sglang", releases=">=0.5.9", ep=">1")
    why = "the engine asserts ep to be 1 or tp for these runners"
    fix = "parallel.ep: 1 or the same as parallel.tp"
    evidence = (code("0.5.10 to 0.5.23"),)
    log_pattern = r"expert parallel size must be 1 or the same as the tensor parallel size"
    failing = Context(tp=4, ep=2, flags={"moe_runner_backend": "flashinfer_cutlass"})
    passing = Context(tp=4, ep=4, flags={"moe_runner_backend": "flashinfer_cutlass"})

    def check(self, ctx: Context) -> Iterable[Hit]:
        if ctx.moe_runner in ("flashinfer_cutlass", "flashinfer_cutedsl") and ctx.ep != ctx.tp:
            yield Hit(f"ep {ctx.ep} at tp {ctx.tp} with moe_runner_backend {ctx.moe_runner}", "parallel")
