"""A quantized KV cache costs llama.cpp more than it saves on GB10."""

from sparkloom.judge.rules.base import Hit, Hits, LaunchView, Rule, Scope, case
from sparkloom.judge.rules.sources import PSA_POST


class LlamacppKvQuantization(Rule):
    id = "llamacpp-kv-quantization"
    severity = "warning"
    scope = Scope(engine="llamacpp")
    why = (
        "q4_0 is unpacked in software: prompt processing falls by 92 % at 64K tokens; turbo types lose 24"
        " % at 32K. Memory is not what is short here"
    )
    fix = "cache_type_k and cache_type_v: f16 or q8_0"
    evidence = (PSA_POST,)
    failing = case(engine="llamacpp", release="8399", packing="gguf", flags={"cache_type_k": "q4_0"})
    passing = case(engine="llamacpp", release="8399", packing="gguf", flags={"cache_type_k": "q8_0"})

    def check(self, view: LaunchView) -> Hits:
        for name in ("cache_type_k", "cache_type_v"):
            value = str(view.flag(name, "f16"))
            if value not in ("f16", "bf16", "f32", "q8_0"):
                yield Hit(f"{name} is {value}", name)
