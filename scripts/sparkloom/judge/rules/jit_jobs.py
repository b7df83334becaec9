"""Unlimited parallel compilers exhaust unified memory."""

from sparkloom.judge.rules.base import Hit, Hits, LaunchView, Rule, Scope, Source, case
from sparkloom.judge.rules.sources import rows


class JitJobs(Rule):
    id = "jit-jobs"
    severity = "warning"
    scope = Scope(engine="*")
    why = (
        "each nvcc takes gigabytes of the memory that the weights already fill: workers are OOM-killed "
        "while they compile"
    )
    fix = 'env: {MAX_JOBS: "4"} or less'
    evidence = (
        rows("GLM-4.7 and MiniMax-M2.5 with flashinfer_cutlass on 0.5.10rc0: OOM-killed at startup"),
        Source("launch scripts of vroomfondel/dgxarley use 2 to 4", "2026"),
    )
    log_pattern = r"OOMKilled|Killed\s+.*(nvcc|cicc|ninja)|oom-kill"
    failing = case(env={"MAX_JOBS": "20"})
    passing = case(env={"MAX_JOBS": "4"})

    def check(self, view: LaunchView) -> Hits:
        jobs = view.env.get("MAX_JOBS", "")
        if jobs.isdigit() and int(jobs) > 4:
            yield Hit(f"MAX_JOBS is {jobs}", "env.MAX_JOBS")
