"""What to say about a name that a release does not know, and about values that only its registries know."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping

from sparkloom.inputs.catalogs import flagtypes
from sparkloom.inputs.catalogs.catalog import Catalog
from sparkloom.inputs.catalogs.flagtypes import FlagProblem
from sparkloom.inputs.catalogs.releases import engines, releases

# A plugin file may register more names than the release brings.
_PLUGINS = {"reasoning-parser": "--reasoning-parser-plugin", "tool-call-parser": "--tool-parser-plugin"}


def unknown(catalog: Catalog, name: str) -> str:
    """The flag is none of this release; where it does exist, or what it was probably meant to be."""
    text = f"{name} is no flag of {catalog.engine} {catalog.version}"
    if hint := _elsewhere(catalog, name) or _variable(catalog, name):
        return f"{text}; {hint}"
    return meant(text, name, catalog.spellings, 0.75)


def _elsewhere(catalog: Catalog, name: str) -> str:
    having = [version for version in releases(catalog.engine) if name in catalog.of(version).spellings]
    if having:
        span = having[0] if len(having) == 1 else f"{having[0]} to {having[-1]}"
        return f"{catalog.engine} {span} has it" + _successor(catalog, name, having)
    others = [other for other in engines() if name in Catalog.load(other, releases(other)[-1]).spellings]
    return f"it is a flag of {' and '.join(others)}" if others else ""


def _successor(catalog: Catalog, name: str, having: list[str]) -> str:
    """The replacement that the last release with the flag names, if this release has that."""
    flag = catalog.of(having[-1]).flag(name)
    if flag and flag.replacement and flag.replacement.split("=")[0] in catalog.spellings:
        return f", here it is {flag.replacement}"
    return ""


def _variable(catalog: Catalog, name: str) -> str:
    """`--disable-deep-gemm` is no flag, but there is a variable with `DEEPGEMM` in its name."""
    words = [word for word in name.strip("-").split("-") if word not in ("enable", "disable", "no", "use")]
    wanted = "".join(words).upper()
    close = [env for env in catalog.variables() if len(wanted) > 4 and env.replace("_", "").endswith(wanted)]
    return f"perhaps the environment variable {min(close, key=len)}" if close else ""


def meant(text: str, name: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """The text, and which known name was probably meant."""
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=cutoff)
    return f"{text}; did you mean {close[0]}?" if close else text


def unregistered(catalog: Catalog, given: Mapping[str, list[str]]) -> Iterator[FlagProblem]:
    """Values that the parser takes as free text and the engine looks up later."""
    for registry, known in catalog.registries.items():
        flag = f"--{registry}"
        values = given.get(flag, []) if registry not in ("needs", "speculative-config") else []
        if _PLUGINS.get(registry) in given:
            continue
        for value in values:
            if value not in known and value not in ("", "None"):
                text = f"{flag}: {catalog.engine} {catalog.version} registers no '{value}'"
                having = [name for name in known if value in name.split("_")]  # fp4: modelopt_fp4, and not mxfp4
                yield FlagProblem(flag, meant(text, value, having or known, 0.0 if having else 0.6), "unregistered")
    yield from _speculative(catalog, given.get("--speculative-config", []))


def _speculative(catalog: Catalog, values: list[str]) -> Iterator[FlagProblem]:
    fields = catalog.registries.get("speculative-config", ())
    methods = catalog.registries.get("speculative-method", ())
    for value in values:
        try:
            content = flagtypes.parse_json(value)
        except ValueError:
            continue  # reported as a wrong type already
        for key in content if isinstance(content, dict) and fields else ():
            if key not in fields:
                text = f"--speculative-config: {catalog.engine} {catalog.version} knows no key '{key}'"
                yield FlagProblem("--speculative-config", meant(text, key, fields), "unregistered")
        method = content.get("method") if isinstance(content, dict) else None
        if method and methods and method not in methods:
            text = f"--speculative-config: {catalog.engine} {catalog.version} knows no method '{method}'"
            yield FlagProblem("--speculative-config", text, "unregistered")
