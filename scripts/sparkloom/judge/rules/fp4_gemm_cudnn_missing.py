"""The cuDNN FP4 GEMM needs a wheel that the plain images of 0.5.10 and later do not carry."""

from sparkloom.judge.rules.base import Hit, Hits, LaunchView, Rule, Scope, case
from sparkloom.judge.rules.sources import SUPER_POST, ULTRA_POST, rows


class Fp4GemmCudnnMissing(Rule):
    id = "fp4-gemm-cudnn-missing"
    severity = "error"
    scope = Scope(
        engine="sglang",
        releases=">=0.5.10,<0.5.14",
        packing="modelopt|compressed-tensors",
        image=r"^scitrera/dgx-spark-sglang:|nemotronh-mtp",
        unless_carries=("cudnn",),
    )
    why = (
        "flashinfer_cudnn is called for every FP4 layer outside the experts; without the cuDNN wheel it "
        "raises at graph capture, or in eager mode at the first request. Where only the routed experts "
        "are FP4 (Qwen3.5 MoE, MiniMax, Ultra) it is never called, which is why the posts disagree about "
        "the same image. The images named -cudnn bring the wheel"
    )
    fix = (
        "fp4_gemm_backend: flashinfer_cutlass (equally fast), or an image with the cuDNN wheel and "
        "`engine.carries: [cudnn]`"
    )
    evidence = (
        SUPER_POST,
        ULTRA_POST,
        rows(
            "GLM-4.7, Qwen3-235B on 0.5.10, Super and Qwen3.6-35B by RedHat on 0.5.12: all fail; on -cudnn "
            "images they run"
        ),
    )
    log_pattern = r"cuDNN is not available"
    failing = case(
        packing="modelopt", image="scitrera/dgx-spark-sglang:0.5.12", flags={"fp4_gemm_backend": "flashinfer_cudnn"}
    )
    passing = case(
        packing="modelopt",
        image="xomoxcc/dgx-spark-sglang:0.5.12-cudnn",
        flags={"fp4_gemm_backend": "flashinfer_cudnn"},
    )

    def check(self, view: LaunchView) -> Hits:
        if (
            view.flag("fp4_gemm_backend") == "flashinfer_cudnn"
            and view.facts.fp4_outside_experts is not False
            and "-mm:" not in view.image
        ):
            yield Hit(
                f"fp4_gemm_backend is flashinfer_cudnn and image {view.image} is not known to carry cuDNN",
                "fp4_gemm_backend",
            )
