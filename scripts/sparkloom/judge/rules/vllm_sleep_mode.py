"""vLLM's own sleep keeps an engine in memory and wakes it in seconds; on a GB10 the waking took the host along."""

from sparkloom.judge.rules.base import Hit, Hits, LaunchView, Rule, Scope, Source, case


class VllmSleepMode(Rule):
    id = "vllm-sleep-mode"
    severity = "warning"
    scope = Scope(engine="vllm")
    why = (
        "on one GB10 wake_up ended the engine, on another one the host: its memory thrashed until its power was cut, "
        "twice"
    )
    fix = "remove enable_sleep_mode; idle_minutes in the list `serve:` ends an idle group and starts it again"
    evidence = (Source("vllm#50011: wake_up on two DGX Sparks, builds of 0.25.1 and around 0.19.2", "2026-09"),)
    failing = case(engine="vllm", release="0.33.0", flags={"enable_sleep_mode": True})
    passing = case(engine="vllm", release="0.33.0")

    def check(self, view: LaunchView) -> Hits:
        if view.on("enable_sleep_mode"):
            yield Hit("enable_sleep_mode is on", "enable_sleep_mode")
