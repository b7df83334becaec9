"""vLLM over several Sparks is started with --nnodes, which is another way than Ray's."""

from sparkloom.judge.rules.base import Hit, Hits, LaunchView, Rule, Scope, case
from sparkloom.judge.rules.sources import code

BESIDE_NNODES = ("", "mp", "uni", "external_launcher")


class VLLMExecutorBackend(Rule):
    id = "vllm-executor-backend"
    severity = "error"
    scope = Scope(engine="vllm", nodes=">1")
    why = "--nnodes starts one process per Spark; vLLM then refuses an executor of another kind, and no Ray runs here"
    fix = "remove distributed_executor_backend (mp is written for you)"
    evidence = (code("ParallelConfig of vLLM 0.17 to 0.33: nnodes beyond 1 needs mp"),)
    log_pattern = r"nnodes > 1 can only be set when distributed executor backend is"
    failing = case(engine="vllm", release="0.19.0", nodes=4, tp=4, flags={"distributed_executor_backend": "ray"})
    passing = case(engine="vllm", release="0.19.0", nodes=4, tp=4, flags={"distributed_executor_backend": "mp"})

    def check(self, view: LaunchView) -> Hits:
        asked = view.text("distributed_executor_backend")
        if asked not in BESIDE_NNODES:
            yield Hit(
                f"distributed_executor_backend: {asked} beside --nnodes {view.nodes}", "distributed_executor_backend"
            )
