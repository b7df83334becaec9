"""Pickles are programs: loading one runs what it says, whatever the file is called."""

from sparkloom.judge.rules.base import Hit, Hits, LaunchView, Rule, Scope, case
from sparkloom.judge.rules.sources import code

PICKLED = {"pt", "pickle", "torch", "bin", "npcache"}
FLAGS = ("load_format", "speculative_draft_load_format")


class PickledWeights(Rule):
    id = "pickled-weights"
    severity = "error"
    scope = Scope(engine="*")
    why = "torch.load runs code that is in a *.pt or *.bin file; the weights here are safetensors or GGUF"
    fix = "remove it (auto), or load_format: safetensors"
    evidence = (code("load_format pt and npcache read *.pt and *.bin with torch.load"),)
    predicts_failure = False
    failing = case(flags={"load_format": "pt"})
    passing = case(flags={"load_format": "safetensors"})

    def check(self, view: LaunchView) -> Hits:
        for flag in FLAGS:
            if view.text(flag).lower() in PICKLED:
                yield Hit(f"{flag} is {view.text(flag)}", flag)
