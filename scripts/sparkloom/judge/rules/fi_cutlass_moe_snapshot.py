"""The 0.5.9 snapshots: FlashInfer's CUTLASS MoE ran for MiniMax-M2 without a pipeline, with FlashInfer attention."""

from sparkloom.judge.rules.base import Hit, Hits, LaunchView, Rule, Scope, Source, case
from sparkloom.judge.rules.sources import rows


class FiCutlassMoeSnapshot(Rule):
    id = "fi-cutlass-moe-snapshot"
    severity = "error"
    scope = Scope(engine="sglang", releases="<0.5.10rc0", packing="modelopt")
    why = (
        "the kernels have the same faulty tiles as in 0.5.10: illegal instructions or memory exhaustion "
        "at capture. Without a pipeline, MiniMax-M2 was clean with FlashInfer attention, or in eager "
        "mode; with triton attention inside graphs a worker died at four requests"
    )
    fix = "an image of release 0.5.12 or newer; on this one moe_runner_backend: triton with EP=1"
    evidence = (
        rows("MiniMax-M2.5 on 2, 3 and 4 nodes and GLM-4.7 on 4, snapshot of 2026-03-11"),
        Source("flashinfer issues 2798 and 2913", "2026"),
    )
    log_pattern = r"Xid \(\S+\): 13,.*[Ii]llegal"
    failing = case(
        release="0.5.9",
        architecture="MiniMaxM2ForCausalLM",
        packing="modelopt",
        pp=3,
        flags={"moe_runner_backend": "flashinfer_cutlass", "attention_backend": "flashinfer"},
    )
    passing = case(
        release="0.5.9",
        architecture="MiniMaxM2ForCausalLM",
        packing="modelopt",
        tp=4,
        ep=4,
        flags={"moe_runner_backend": "flashinfer_cutlass", "attention_backend": "flashinfer"},
    )

    def check(self, view: LaunchView) -> Hits:
        minimax = (
            view.architecture.startswith("MiniMaxM2")
            and view.pp == 1
            and (view.attention == "flashinfer" or view.eager)
        )
        if view.nvfp4 and view.moe_runner == "flashinfer_cutlass" and not minimax:
            yield Hit(
                f"moe_runner_backend is flashinfer_cutlass on release {view.release}, pp {view.pp}",
                "moe_runner_backend",
            )
