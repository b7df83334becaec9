"""json_model_override_args is checked late: as text it must be JSON."""

import json

from sparkloom.judge.rules.base import Hit, Hits, LaunchView, Rule, Scope, case
from sparkloom.judge.rules.sources import code


class OverrideJson(Rule):
    id = "override-json"
    severity = "error"
    scope = Scope(engine="sglang")
    why = "the parser takes any text; the JSONDecodeError comes when the model's config is read"
    fix = "write it as a mapping in the profile: the launcher turns it into JSON"
    evidence = (code("0.5.10 to 0.5.23"),)
    log_pattern = (
        r"JSONDecodeError(?s:.{0,300})json[-_]model[-_]override|json[-_]model[-_]override(?s:.{0,2000})JSONDecodeError"
    )
    failing = case(flags={"json_model_override_args": "{max_position_embeddings: 1}"})
    passing = case(flags={"json_model_override_args": {"max_position_embeddings": 1}})

    def check(self, view: LaunchView) -> Hits:
        value = view.flag("json_model_override_args")
        if isinstance(value, str) and not view.partial:
            try:
                json.loads(value)
            except ValueError as error:
                yield Hit(f"json_model_override_args is no JSON: {error}", "json_model_override_args")
