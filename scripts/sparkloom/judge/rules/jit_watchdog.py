"""First requests compile kernels; a watchdog of five minutes kills that."""

from sparkloom.judge.rules.base import Hit, Hits, LaunchView, Rule, Scope, Source, case
from sparkloom.judge.rules.sources import rows

DEFAULT, LEAST = 300, 1800


class JitWatchdog(Rule):
    id = "jit-watchdog"
    severity = "warning"
    scope = Scope(engine="sglang", packing="modelopt|compressed-tensors|fp8")
    why = "a cold FlashInfer cache compiles for up to 36 minutes and looks like a hang; the watchdog's default is 300 s"
    fix = "leave watchdog_timeout out (Sparkloom sets 3600), or give it 1800 and more"
    evidence = (rows("first requests of 10 to 287 s"), Source("field reports on JIT times", "2026"))
    log_pattern = r"[Ww]atchdog timeout|self\.watchdog_timeout"
    failing = case(packing="modelopt")
    passing = case(packing="modelopt", flags={"watchdog_timeout": 3600})

    def check(self, view: LaunchView) -> Hits:
        limit = view.number("watchdog_timeout")
        if limit is None and not view.partial:
            yield Hit(f"watchdog_timeout is unset, and the engine then takes {DEFAULT} s", "watchdog_timeout")
        if limit is not None and limit < LEAST:
            yield Hit(f"watchdog_timeout is {limit:.0f} s", "watchdog_timeout")
