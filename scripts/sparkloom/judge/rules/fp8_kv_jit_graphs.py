"""The KV-cache kernel of 0.5.10 is compiled for sm_121 instead of the sm_120 family."""

from sparkloom.judge.rules.base import Hit, Hits, LaunchView, Rule, Scope, case
from sparkloom.judge.rules.sources import TUNING_POST, rows


class Fp8KvJitGraphs(Rule):
    id = "fp8-kv-jit-graphs"
    severity = "info"
    scope = Scope(engine="sglang", releases=">=0.5.10,<0.5.11")
    why = (
        "it may hold instructions that GB10 cannot decode. The post says that any FP8 KV cache with "
        "graphs is hit; its own runs show it with FlashInfer's CUTLASS MoE only, and dozens of FP8 KV "
        "runs with graphs serve: a hint for a crash in kvcache.cuh, no verdict"
    )
    fix = "an image of release 0.5.11 or newer"
    evidence = (TUNING_POST, rows("GLM-4.7 EP=1 on 0.5.10: one crash in kvcache.cuh, with flashinfer_cutlass MoE"))
    log_pattern = r"kvcache\.cuh"
    failing = case(release="0.5.10", flags={"kv_cache_dtype": "fp8_e4m3", "moe_runner_backend": "flashinfer_cutlass"})
    passing = case(release="0.5.10", flags={"kv_cache_dtype": "fp8_e4m3", "moe_runner_backend": "triton"})

    def check(self, view: LaunchView) -> Hits:
        if (
            str(view.flag("kv_cache_dtype", "")).startswith("fp8")
            and not view.eager
            and view.moe_runner == "flashinfer_cutlass"
        ):
            yield Hit(f"kv_cache_dtype {view.flag('kv_cache_dtype')} with CUDA graphs", "kv_cache_dtype")
