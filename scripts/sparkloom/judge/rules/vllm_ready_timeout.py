"""vLLM's API server gives its core ten minutes; a cold load with its compilations takes longer."""

from sparkloom.judge.rules.base import Hit, Hits, LaunchView, Rule, Scope, Source, case

NAME, DEFAULT, LEAST = "VLLM_ENGINE_READY_TIMEOUT_S", 600, 1800


class VllmReadyTimeout(Rule):
    id = "vllm-ready-timeout"
    severity = "warning"
    scope = Scope(engine="vllm")
    why = (
        "the first load on a node compiles kernels for up to 36 minutes; the server ends this start after 600"
        " s, and the next one too"
    )
    fix = f"leave {NAME} out (Sparkloom sets 3600), or give it {LEAST} and more"
    evidence = (Source("vllm#48031: the first cold load dies of it", "2026"),)
    log_pattern = r"Timed out waiting for engine core processes to start"
    failing = case(engine="vllm", release="0.19.0")
    passing = case(engine="vllm", release="0.19.0", env={NAME: "3600"})

    def check(self, view: LaunchView) -> Hits:
        given = view.env.get(NAME, "")
        if not given and not view.partial:
            yield Hit(f"{NAME} is unset, and the engine then takes {DEFAULT} s", f"env.{NAME}")
        elif given.isdigit() and int(given) < LEAST:
            yield Hit(f"{NAME} is {given} s", f"env.{NAME}")
