"""speculative_config.moe_backend exists from vLLM 0.19.0."""

from sparkloom.judge.rules.base import Hit, Hits, LaunchView, Rule, Scope, case
from sparkloom.judge.rules.sources import GUIDE, code


class VllmSpeculativeMoeBackend(Rule):
    id = "vllm-speculative-moe-backend"
    severity = "error"
    scope = Scope(engine="vllm", releases="<0.19.0")
    why = (
        "older releases refuse the unknown key; that is why the guide says that 0.17.1 does not support "
        "MTP with NVFP4 here"
    )
    fix = "an image of release 0.19.0 or newer"
    evidence = (GUIDE, code("absent in 0.17.1 and 0.18.1, present in 0.19.0"))
    log_pattern = r"SpeculativeConfig\s+moe_backend|moe_backend\s+Unexpected keyword"
    failing = case(
        engine="vllm", release="0.17.1", flags={"speculative_config": {"method": "mtp", "moe_backend": "triton"}}
    )
    passing = case(
        engine="vllm", release="0.19.0", flags={"speculative_config": {"method": "mtp", "moe_backend": "triton"}}
    )

    def check(self, view: LaunchView) -> Hits:
        config = view.flag("speculative_config")
        if isinstance(config, dict) and "moe_backend" in config:
            yield Hit(f"speculative_config.moe_backend on release {view.release}", "speculative_config")
