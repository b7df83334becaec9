"""An FP4 KV cache and speculation together corrupt the output in silence."""

from sparkloom.judge.rules.base import Hit, Hits, LaunchView, Rule, Scope, Source, case


class Nvfp4KvSpeculation(Rule):
    id = "nvfp4-kv-speculation"
    severity = "error"
    scope = Scope(engine="sglang")
    why = (
        "with FlashInfer 0.6.16 and newer draft verification reads FP4 keys wrongly: no error, but not "
        "one of ten maths questions right"
    )
    fix = "kv_cache_dtype: fp8_e4m3, or no speculation"
    evidence = (Source("launch patch p37 of vroomfondel/dgxarley, GSM8K 0 of 10", "2026"),)
    failing = case(flags={"kv_cache_dtype": "fp4_e2m1", "speculative_algorithm": "NEXTN"})
    passing = case(flags={"kv_cache_dtype": "fp8_e4m3", "speculative_algorithm": "NEXTN"})

    def check(self, view: LaunchView) -> Hits:
        dtype = str(view.flag("kv_cache_dtype", ""))
        if view.speculates and ("fp4" in dtype or "nvfp4" in dtype):
            yield Hit(f"kv_cache_dtype is {dtype} with speculation", "kv_cache_dtype")
