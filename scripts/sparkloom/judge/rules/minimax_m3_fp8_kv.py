"""MiniMax-M3's sparse attention kernel cannot multiply FP8 keys."""

from sparkloom.judge.rules.base import Hit, Hits, LaunchView, Rule, Scope, case
from sparkloom.judge.rules.sources import rows


class MinimaxM3Fp8Kv(Rule):
    id = "minimax-m3-fp8-kv"
    severity = "error"
    scope = Scope(engine="sglang", architecture="MiniMaxM3", image=r"sglang-mm:v0")
    why = (
        "its triton kernel of that image has no tl.dot for FP8, so graph capture dies; the model card's "
        "kv dtype does not help"
    )
    fix = "kv_cache_dtype: auto"
    evidence = (rows("MiniMax-M3 v0: fp8_e4m3 crashes in capture, ten runs with auto serve"),)
    log_pattern = r"tl\.dot.*(fp8|float8|e4m3)|(fp8|float8).*tl\.dot"
    failing = case(
        architecture="MiniMaxM3ForCausalLM",
        image="scitrera/dgx-spark-sglang-mm:v0",
        flags={"kv_cache_dtype": "fp8_e4m3"},
    )
    passing = case(
        architecture="MiniMaxM3ForCausalLM", image="scitrera/dgx-spark-sglang-mm:v0", flags={"kv_cache_dtype": "auto"}
    )

    def check(self, view: LaunchView) -> Hits:
        if str(view.flag("kv_cache_dtype", "")).startswith("fp8"):
            yield Hit(f"kv_cache_dtype is {view.flag('kv_cache_dtype')}", "kv_cache_dtype")
