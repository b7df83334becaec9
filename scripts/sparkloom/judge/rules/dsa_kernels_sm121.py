"""Sparse-attention models (DeepSeek V3.2 and V4, GLM-5) default to kernels that GB10 cannot run."""

from sparkloom.judge.rules.base import Hit, Hits, LaunchView, Rule, Scope, Source, case


class DsaKernelsSm121(Rule):
    id = "dsa-kernels-sm121"
    severity = "warning"
    scope = Scope(engine="sglang", architecture="DeepseekV32|DeepseekV4|GlmMoeDsa")
    why = (
        "DeepGEMM, TensorRT-LLM and FlashMLA paths of sparse attention are built for SM90 and SM100; only"
        " tilelang and torch paths start on SM121, and those of a build with b12x"
    )
    fix = (
        "nsa_prefill_backend and nsa_decode_backend (dsa_* from 0.5.13): tilelang, with env "
        "SGLANG_ENABLE_JIT_DEEPGEMM=0"
    )
    evidence = (
        Source("sparse-attention notes of vroomfondel/dgxarley", "2026"),
        Source("sgl-project/sglang 37479: verified on two Sparks with SGLANG_SM120_FLASHMLA_BACKEND=b12x", "2026-09"),
    )
    failing = case(architecture="GlmMoeDsaForCausalLM", flags={"nsa_decode_backend": "flashmla_sparse"})
    passing = case(architecture="GlmMoeDsaForCausalLM", flags={"nsa_decode_backend": "tilelang"})

    def check(self, view: LaunchView) -> Hits:
        chosen = view.flag("dsa_decode_backend") or view.flag("nsa_decode_backend")
        own = view.env.get("SGLANG_SM120_FLASHMLA_BACKEND", "")  # SM12x has its own choice beside those flags
        if not view.partial and not own and chosen not in ("tilelang", "torch"):
            yield Hit(f"the sparse decode backend is {chosen or 'left to the engine'}", "nsa_decode_backend")
