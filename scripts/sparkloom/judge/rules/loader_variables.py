"""Variables that put other code into every process of the image, before the engine's first line."""

from sparkloom.judge.rules.base import Hit, Hits, LaunchView, Rule, Scope, Source, case

# Each names files, or folders of them, that are run or linked in place of what the image was tested with.
LOADED = {
    "BASH_ENV", "GLIBC_TUNABLES", "LD_AUDIT", "LD_LIBRARY_PATH", "LD_PRELOAD", "PYTHONHOME", "PYTHONINSPECT",
    "PYTHONPATH", "PYTHONSTARTUP", "VLLM_PLUGINS",
}  # fmt: skip


class LoaderVariables(Rule):
    id = "loader-variables"
    severity = "error"
    scope = Scope(engine="*")
    why = "the loader, Python or a shell runs what the variable names, in every process of the privileged engine"
    fix = "remove it from env; what the engine needs belongs into the image (docs/images.md)"
    evidence = (Source("ld.so(8), python(1), bash(1): what they read from the environment"),)
    predicts_failure = False
    failing = case(env={"LD_PRELOAD": "/models/hook.so"})
    passing = case(env={"OMP_NUM_THREADS": "8"})

    def check(self, view: LaunchView) -> Hits:
        for name in sorted(LOADED & view.env.keys()):
            if not view.partial and view.env[name]:
                yield Hit(f"{name} is '{view.env[name]}'", f"env.{name}")
