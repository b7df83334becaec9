"""FlashInfer's CUTLASS MoE kernels of the 0.5.10 era contain tiles that SM121 cannot execute."""

from sparkloom.judge.rules.base import Hit, Hits, LaunchView, Rule, Scope, Source, case
from sparkloom.judge.rules.sources import TUNING_POST, rows


class FiCutlassMoeIllegalInstruction(Rule):
    id = "fi-cutlass-moe-illegal-instruction"
    severity = "error"
    # Qwen3-235B (32 experts a rank) never met the faulty tile: 3 of 3 clean runs, and the post's RoCE figures
    scope = Scope(engine="sglang", releases=">=0.5.10rc0,<0.5.12", architecture="(?!Qwen3Moe)", packing="modelopt")
    why = (
        "the grouped GEMM picks its tile by tokens per expert; some tiles exceed what SM121 has, so one "
        "request may pass and four kill a random rank. Neither attention, FP4 GEMM, graph mode nor the "
        "all-gather switch helps; FlashInfer fixed the tiles and 0.5.12 has them. One combination was "
        "seen clean: GLM-4.7 with triton attention and cuDNN FP4 GEMM at EP=1, or eager at EP=4"
    )
    fix = "moe_runner_backend: triton (EP=1) on this release, or an image of release 0.5.12 or newer"
    evidence = (
        TUNING_POST,
        rows(
            "Qwen3.5-397B, GLM-4.7 and MiniMax-M2.5 on 0.5.10rc0 and 0.5.10: 110 of 114 fail; from 0.5.12 on "
            "almost none"
        ),
        Source("flashinfer issues 2798 and 2913", "2026"),
    )
    log_pattern = r"cudaErrorIllegalInstruction|an illegal instruction was encountered|Xid \(\S+\): 13,"
    failing = case(
        release="0.5.10",
        architecture="Qwen3_5MoeForConditionalGeneration",
        packing="modelopt",
        flags={"moe_runner_backend": "flashinfer_cutlass"},
    )
    passing = case(
        release="0.5.12",
        architecture="Qwen3_5MoeForConditionalGeneration",
        packing="modelopt",
        flags={"moe_runner_backend": "flashinfer_cutlass"},
    )

    def check(self, view: LaunchView) -> Hits:
        if view.nvfp4 and view.moe_runner == "flashinfer_cutlass" and not _clean(view):
            yield Hit(f"moe_runner_backend is flashinfer_cutlass on release {view.release}", "moe_runner_backend")


def _clean(view: LaunchView) -> bool:
    glm = (
        view.architecture.startswith("Glm4Moe")
        and view.attention == "triton"
        and view.flag("fp4_gemm_backend") == "flashinfer_cudnn"
    )
    return glm and not view.speculates and view.pp == 1 and (view.ep == 1 or view.eager)
