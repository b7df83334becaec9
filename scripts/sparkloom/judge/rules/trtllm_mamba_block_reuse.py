"""A Mamba state cannot be reused by prefix in TensorRT-LLM."""

from sparkloom.judge.rules.base import Hit, Hits, LaunchView, Rule, Scope, case
from sparkloom.judge.rules.sources import GUIDE


class TrtllmMambaBlockReuse(Rule):
    id = "trtllm-mamba-block-reuse"
    severity = "error"
    scope = Scope(engine="trtllm", architecture="NemotronH")
    why = "block reuse is on by default and does not work with recurrent state"
    fix = "extra_llm_api_options.kv_cache_config.enable_block_reuse: false"
    evidence = (GUIDE,)
    failing = case(
        engine="trtllm",
        release="1.3.0rc9",
        architecture="NemotronHForCausalLM",
        flags={"extra_llm_api_options": {"kv_cache_config": {"dtype": "fp8"}}},
    )
    passing = case(
        engine="trtllm",
        release="1.3.0rc9",
        architecture="NemotronHForCausalLM",
        flags={"extra_llm_api_options": {"kv_cache_config": {"enable_block_reuse": False}}},
    )

    def check(self, view: LaunchView) -> Hits:
        options = view.flag("extra_llm_api_options")
        cache = options.get("kv_cache_config", {}) if isinstance(options, dict) else {}
        if not isinstance(cache, dict) or cache.get("enable_block_reuse") is not False:
            yield Hit("kv_cache_config.enable_block_reuse is not false", "extra_llm_api_options")
