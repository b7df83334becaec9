"""load_format fastsafetensors needs a package of that name, which many images do not have."""

from sparkloom.judge.rules import image_packages
from sparkloom.judge.rules.base import Hit, Hits, LaunchView, Rule, Scope, Source, case
from sparkloom.launch.engines.base import LOAD_FORMATS

PACKAGE = "fastsafetensors"


class FastsafetensorsMissing(Rule):
    id = "fastsafetensors-missing"
    severity = "error"
    scope = Scope(engine="*", unless_carries=(PACKAGE,))
    why = (
        "every release accepts the word, and imports the package only when loading begins: the start ends minutes later"
    )
    fix = (
        "leave load_format out, or use an image that has the package (vLLM's own from 0.20.0 on, scitrera's); "
        "engine.carries: [fastsafetensors] says that yours does"
    )
    evidence = (
        Source("what is known of published images: scripts/sparkloom/judge/data/image_packages.yml", "2026-11"),
        Source("vllm-project/vllm, model_executor/model_loader/weight_utils.py: the import and its message", "2026"),
    )
    log_pattern = r"install fastsafetensors|No module named '?fastsafetensors"
    failing = case(
        engine="vllm", release="0.19.0", image="vllm/vllm-openai:v0.19.0-cu130", flags={"load_format": PACKAGE}
    )
    passing = case(
        engine="vllm", release="0.20.0", image="vllm/vllm-openai:v0.20.0-cu130", flags={"load_format": PACKAGE}
    )

    def check(self, view: LaunchView) -> Hits:
        for flag in LOAD_FORMATS:
            if view.flag(flag) != PACKAGE:
                continue
            told = image_packages.known(PACKAGE, view)
            if told and not told["carried"]:
                yield Hit(f"{flag} is {PACKAGE}, and {view.image} does not have that package", flag)
