"""CUDA_LAUNCH_BLOCKING serialises every kernel, whatever its value."""

from sparkloom.judge.rules.base import Hit, Hits, LaunchView, Rule, Scope, Source, case


class CudaLaunchBlocking(Rule):
    id = "cuda-launch-blocking"
    severity = "error"
    predicts_failure = False  # slow, not broken
    scope = Scope(engine="*")
    why = "it is a debugging switch that serialises kernels; even '0' was seen to do so"
    fix = "remove CUDA_LAUNCH_BLOCKING from env"
    evidence = (Source("NCCL notes of vroomfondel/dgxarley", "2026"),)
    failing = case(env={"CUDA_LAUNCH_BLOCKING": "0"})
    passing = case()

    def check(self, view: LaunchView) -> Hits:
        if "CUDA_LAUNCH_BLOCKING" in view.env:
            yield Hit(f"CUDA_LAUNCH_BLOCKING is '{view.env['CUDA_LAUNCH_BLOCKING']}'", "env.CUDA_LAUNCH_BLOCKING")
