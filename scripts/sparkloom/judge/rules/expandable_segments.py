"""Expandable segments help some launches by 6 GiB and break others."""

from sparkloom.judge.rules.base import Hit, Hits, LaunchView, Rule, Scope, Source, case


class ExpandableSegments(Rule):
    id = "expandable-segments"
    severity = "info"
    scope = Scope(engine="*")
    why = (
        "on unified memory they may end in driver errors 0x51; keep the setting with the profile that was"
        " measured with it, never for all"
    )
    fix = "measure with and without PYTORCH_CUDA_ALLOC_CONF, keep the better one in this profile"
    evidence = (Source("dgx-spark-playbooks issue 97", "2026"),)
    log_pattern = r"NVRM.*0x51|RM.*NV_ERR_INSUFFICIENT_RESOURCES"
    failing = case(env={"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"})
    passing = case()

    def check(self, view: LaunchView) -> Hits:
        if "expandable_segments:true" in view.env.get("PYTORCH_CUDA_ALLOC_CONF", "").lower():
            yield Hit("PYTORCH_CUDA_ALLOC_CONF asks for expandable segments", "env.PYTORCH_CUDA_ALLOC_CONF")
