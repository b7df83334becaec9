"""SGLang dropped the `cutlass` runner for ModelOpt weights in 0.5.12."""

from sparkloom.judge.rules.base import Hit, Hits, LaunchView, Rule, Scope, case
from sparkloom.judge.rules.sources import TUNING_POST, rows


class ModeloptCutlassRunner(Rule):
    id = "modelopt-cutlass-runner"
    severity = "error"
    scope = Scope(engine="sglang", releases=">=0.5.12", packing="modelopt")
    why = "up to 0.5.11 the word selected cutlass_moe_fp4 directly; since 0.5.12 the runner class knows no such backend"
    fix = "moe_runner_backend: flashinfer_cutlass (or triton, which reaches the same kernel up to 0.5.15)"
    evidence = (
        rows("MiniMax-M2.7 on 0.5.12.post1 and Qwen3.6-35B by mmangkad on 0.5.12: 4 of 4 crash at startup"),
        TUNING_POST,
    )
    log_pattern = r"Unsupported runner backend:? .*CUTLASS"
    failing = case(packing="modelopt", release="0.5.12", flags={"moe_runner_backend": "cutlass"})
    passing = case(packing="modelopt", release="0.5.10", flags={"moe_runner_backend": "cutlass"})

    def check(self, view: LaunchView) -> Hits:
        if view.moe_runner == "cutlass":
            yield Hit(f"moe_runner_backend is cutlass on release {view.release}", "moe_runner_backend")
