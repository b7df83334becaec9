"""A profile that asks for a source patch which is not here, or which was written for other releases."""

from sparkloom.judge.rules.base import Hit, Hits, LaunchView, Rule, Scope, Source, case
from sparkloom.launch import patches


class PatchWithoutData(Rule):
    id = "patch-without-data"
    severity = "error"
    predicts_failure = False  # a rank refuses to start; nobody measured that
    scope = Scope(engine="*")
    why = "each rank applies all of engine.patches before the engine starts, and stops if one does not fit"
    fix = "engine.patches: a name of docs/images.md whose releases include engine.release; or write the patch there"
    evidence = (Source("how this repository starts an engine: docs/images.md"),)
    failing = case(release="0.5.10", carries=frozenset({"patch:no-such-patch"}))
    passing = case(release="0.5.10", carries=frozenset({"patch:nvfp4-ep"}))

    def check(self, view: LaunchView) -> Hits:
        asked = sorted(name.removeprefix("patch:") for name in view.carries if name.startswith("patch:"))
        for name in () if view.partial else asked:
            if name not in patches.names():
                yield Hit(f"no data for patch {name}; here are {', '.join(patches.names())}", "engine.patches")
            elif (patch := patches.load(name)).package == view.engine and view.release not in patch.releases:
                written = f"patch {name} is written for {patch.package} {', '.join(patch.releases)}"
                yield Hit(f"{written}, not {view.release}", "engine.patches")
