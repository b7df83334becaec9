"""With the EP patches the kernel no longer crashes, but outside CUDA graphs its output collapses."""

from sparkloom.judge.rules.base import Hit, Hits, LaunchView, Rule, Scope, case
from sparkloom.judge.rules.sources import TUNING_POST, rows


class Nvfp4EpEagerGarbage(Rule):
    id = "nvfp4-ep-eager-garbage"
    severity = "error"
    scope = Scope(engine="sglang", releases="<0.5.12", packing="modelopt", ep=">1")
    why = (
        "captured graphs replay one variant that works; eager mode dispatches anew each step, and the combine step of "
        "cutlass_moe_fp4 goes wrong under EP: after a while every token is '!', at a faster rate than real text. "
        "At EP=1 the same eager rows are sound: the post's 'not optional for any runner' holds for EP only"
    )
    fix = "disable_cuda_graph: false, and max_running_requests <= cuda_graph_max_bs so that no batch leaves the graphs"
    evidence = (
        TUNING_POST,
        rows(
            "Qwen3.5-397B EP=4 on patched 0.5.10: 8 of 8 eager runs are garbage, 16 of 16 with graphs run; at"
            " EP=1 8 of 8 eager runs are sound"
        ),
    )
    failing = case(
        release="0.5.10",
        packing="modelopt",
        tp=4,
        ep=4,
        carries=frozenset({"patch:nvfp4-ep"}),
        flags={"moe_runner_backend": "triton", "disable_cuda_graph": True},
    )
    passing = case(
        release="0.5.10",
        packing="modelopt",
        tp=4,
        ep=4,
        carries=frozenset({"patch:nvfp4-ep"}),
        flags={"moe_runner_backend": "triton", "disable_cuda_graph": False},
    )

    def check(self, view: LaunchView) -> Hits:
        if view.nvfp4 and view.eager and view.moe_runner in ("triton", "cutlass"):
            yield Hit(
                f"disable_cuda_graph is true with moe_runner_backend {view.moe_runner} and ep {view.ep}",
                "disable_cuda_graph",
            )
