"""First requests compile kernels; a watchdog of five minutes kills that."""

from sparkloom.judge.rules.base import Hit, Hits, LaunchView, Rule, Scope, Source, case
from sparkloom.judge.rules.sources import rows


class JitWatchdog(Rule):
    id = "jit-watchdog"
    severity = "info"
    scope = Scope(engine="sglang", packing="modelopt|compressed-tensors|fp8")
    why = "a cold FlashInfer cache compiles for up to 36 minutes and looks like a hang; the watchdog's default is 300 s"
    fix = "watchdog_timeout: 3600 while caches are cold, and keep the JIT caches on the node"
    evidence = (rows("first requests of 10 to 287 s"), Source("field reports on JIT times", "2026"))
    log_pattern = r"[Ww]atchdog timeout|self\.watchdog_timeout"
    failing = case(packing="modelopt", flags={"watchdog_timeout": 300})
    passing = case(packing="modelopt", flags={"watchdog_timeout": 3600})

    def check(self, view: LaunchView) -> Hits:
        limit = view.number("watchdog_timeout")
        if limit is not None and limit < 1800:
            yield Hit(f"watchdog_timeout is {limit:.0f} s", "watchdog_timeout")
