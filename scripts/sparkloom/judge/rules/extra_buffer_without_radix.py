"""extra_buffer buffers state for the prefix cache; without that cache the engine refuses it."""

from sparkloom.judge.rules.base import Hit, Hits, LaunchView, Rule, Scope, case
from sparkloom.judge.rules.sources import code


class ExtraBufferWithoutRadix(Rule):
    id = "extra-buffer-without-radix"
    severity = "error"
    scope = Scope(engine="sglang", releases=">=0.5.10rc0,<0.5.14")
    why = "a ValueError at the arguments: with the prefix cache off, no_buffer already overlaps"
    fix = "drop disable_radix_cache, or mamba_scheduler_strategy: no_buffer"
    evidence = (code("0.5.10 to 0.5.13"),)
    log_pattern = r"extra_buffer is not compatible with --disable-radix-cache"
    failing = case(flags={"mamba_scheduler_strategy": "extra_buffer", "disable_radix_cache": True})
    passing = case(flags={"mamba_scheduler_strategy": "extra_buffer"})

    def check(self, view: LaunchView) -> Hits:
        if view.flag("mamba_scheduler_strategy") == "extra_buffer" and view.on("disable_radix_cache"):
            yield Hit("mamba_scheduler_strategy extra_buffer with disable_radix_cache", "mamba_scheduler_strategy")
