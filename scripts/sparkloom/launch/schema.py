"""The JSON schema of a profile file, for editors: what a file may say, not all that the loader checks.

A variant (`extends:`) repeats only what differs and removes a key with null, so nothing inside a section is
required here and everything may be null; the loader judges the merged whole.
"""

from __future__ import annotations

from typing import Any

from sparkloom.inputs.catalogs import releases
from sparkloom.inputs.catalogs.catalog import Catalog
from sparkloom.inputs.profile import Profile
from sparkloom.launch import engines

WHOLE = ["model", "engine", "launch"]  # what a profile without a parent must have
Schema = dict[str, Any]


def build() -> Schema:
    schema = Profile.model_json_schema()
    definitions = schema["$defs"]
    # best known first
    names = sorted(engines.names(), key=lambda name: (len(releases.known(name)), name), reverse=True)
    definitions["Engine"]["properties"]["name"] = {"enum": names, "type": "string"}
    for definition in (schema, *definitions.values()):
        _loosen(definition)
    definitions["LaunchSection"]["additionalProperties"] = True
    schema["properties"]["launch"] = {"anyOf": [{"$ref": "#/$defs/LaunchSection"}, {"type": "null"}]}
    for engine in names:
        definitions[f"{engine}_flags"] = {"properties": _flags(engine)}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "title": "Sparkloom model profile",
        "required": ["summary"],
        "anyOf": [{"required": ["extends"]}, {"required": WHOLE}],
        "allOf": [_when(engine) for engine in names],
    }


def _loosen(definition: Schema) -> None:
    definition.pop("required", None)
    definition.pop("title", None)
    for name, value in definition.get("properties", {}).items():
        value.pop("title", None)
        _loosen_values(value)
        if value.get("type") != "null" and {"type": "null"} not in value.get("anyOf", ()):
            described = {"description": value.pop("description")} if "description" in value else {}
            definition["properties"][name] = {"anyOf": [value, {"type": "null"}], **described}


def _loosen_values(value: Schema) -> None:
    """A variant removes one entry of a mapping with null as well, as one environment variable."""
    for pattern, values in value.get("patternProperties", {}).items():
        value["patternProperties"][pattern] = {"anyOf": [values, {"type": "null"}]}


def _when(engine: str) -> Schema:
    """Flag names are offered once the file says which engine it is for; a variant's parent may say so instead."""
    named = {"properties": {"engine": {"properties": {"name": {"const": engine}}, "required": ["name"]}}}
    offered = {"properties": {"launch": {"$ref": f"#/$defs/{engine}_flags"}}}
    return {"if": {**named, "required": ["engine"]}, "then": offered}


def _flags(engine: str) -> Schema:
    """Every flag that a catalog of this engine knows, and which releases have it."""
    having: dict[str, list[str]] = {}
    known = releases.known(engine)
    for release in known:
        for flag in Catalog.load(engine, release).flags():
            having.setdefault(flag.name.removeprefix("--").replace("-", "_"), []).append(release)
    return {name: {"description": _span(engine, having[name], known)} for name in sorted(having)}


def _span(engine: str, having: list[str], known: tuple[str, ...]) -> str:
    if len(having) == len(known):
        return f"{engine}, every known release"
    return f"{engine} {having[0]}" + (f" to {having[-1]}" if len(having) > 1 else " only")
