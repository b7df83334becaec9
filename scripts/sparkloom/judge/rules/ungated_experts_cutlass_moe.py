"""NemotronH's experts have no gate projection, and SGLang's own FP4 MoE kernel expects gate and up side by side."""

from sparkloom.judge.rules.base import Hit, Hits, LaunchView, Rule, Scope, case
from sparkloom.judge.rules.sources import SUPER_POST, ULTRA_POST, rows


class UngatedExpertsCutlassMoe(Rule):
    id = "ungated-experts-cutlass-moe"
    severity = "error"
    scope = Scope(engine="sglang", releases="<0.5.16", architecture="NemotronH", packing="modelopt")
    why = (
        "every NVFP4 runner but FlashInfer's goes through cutlass_moe_fp4, which asserts a first "
        "projection twice as wide as the expert; experts without a gate have it once. 0.5.16 removed that"
        " function: test again there"
    )
    fix = "moe_runner_backend: flashinfer_cutlass (the only runner that knows ungated experts)"
    evidence = (
        ULTRA_POST,
        SUPER_POST,
        rows("Ultra EP=4, Super EP=1 and EP=4, Nano Omni; 0.5.12 and 0.5.13: 5 of 5 crash at graph capture"),
    )
    log_pattern = r"mismatch in expected `?n`?"
    failing = case(architecture="NemotronHForCausalLM", packing="modelopt", flags={"moe_runner_backend": "triton"})
    passing = case(
        architecture="NemotronHForCausalLM", packing="modelopt", flags={"moe_runner_backend": "flashinfer_cutlass"}
    )

    def check(self, view: LaunchView) -> Hits:
        if view.moe_runner in ("triton", "cutlass") and view.facts.gated is not True:
            yield Hit(f"moe_runner_backend is {view.moe_runner} on {view.architecture}", "moe_runner_backend")
