"""Bootstrap and queue addresses left to chance bind to Wi-Fi or the pod network."""

from sparkloom.judge.rules.base import Hit, Hits, LaunchView, Rule, Scope, Source, case


class BootstrapInterface(Rule):
    id = "bootstrap-interface"
    severity = "error"
    predicts_failure = False  # a freeze on some hosts only
    scope = Scope(engine="*", nodes=">1")
    why = (
        "ranks then wait for each other without a message: ZeroMQ, Gloo and NCCL each pick the first "
        "address that they see"
    )
    fix = (
        "leave NCCL_SOCKET_IFNAME, GLOO_SOCKET_IFNAME and the engine's HOST_IP to the launcher; do not "
        "set them to nothing"
    )
    evidence = (Source("field reports collected for four-Spark clusters", "2026"),)
    log_pattern = r"Bootstrap : no socket interface found|Gloo connectFullMesh failed|init_process_group.*timed? ?out"
    failing = case(nodes=4, tp=4, env={"NCCL_SOCKET_IFNAME": ""})
    passing = case(nodes=4, tp=4, env={"NCCL_SOCKET_IFNAME": "=net1"})

    def check(self, view: LaunchView) -> Hits:
        for name in ("NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME", "SGLANG_HOST_IP", "VLLM_HOST_IP"):
            if name in view.env and not view.env[name].strip():
                yield Hit(f"{name} is empty", f"env.{name}")
