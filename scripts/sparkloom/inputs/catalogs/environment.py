"""Judges an engine's environment variables by a catalog. An engine ignores a name it does not know without a word."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sparkloom.inputs.catalogs import hints
from sparkloom.inputs.catalogs.catalog import Catalog, Variable
from sparkloom.inputs.catalogs.flagtypes import FlagProblem
from sparkloom.inputs.catalogs.releases import releases

_WORDS = {"bool": ("true", "1", "yes", "y", "false", "0", "no", "n"), "bool01": ("0", "1")}


def check(catalog: Catalog, env: Mapping[str, str]) -> list[FlagProblem]:
    """Only the engine's own names: NCCL_*, HF_* and the like belong to others."""
    return [
        problem
        for name, value in env.items()
        if name.startswith(catalog.dialect.prefixes)
        for problem in _judge(catalog, name, value)
    ]


def _judge(catalog: Catalog, name: str, value: str) -> Iterator[FlagProblem]:
    variable = catalog.variable(name)
    if variable is None:
        yield FlagProblem(name, _unknown(catalog, name), "unknown")
        return
    if variable.removed:
        yield FlagProblem(name, f"{catalog.engine} {catalog.version} has removed {name}; it does nothing", "removed")
        return
    if variable.deprecated:
        instead = f"; write {variable.replacement}" if variable.replacement else ""
        yield FlagProblem(name, f"{name} is deprecated in {catalog.engine} {catalog.version}{instead}", "deprecated")
    expected = _expected(variable, value)
    if expected:
        yield FlagProblem(name, f"{name}: expected {expected}, found '{value}'", "type")


def _expected(variable: Variable, value: str) -> str:
    words = _WORDS.get(variable.type or "")
    if words and value.lower() not in words:
        return f"one of {', '.join(words)}"
    if variable.type in ("int", "float"):
        try:
            (int if variable.type == "int" else float)(value)
        except ValueError:
            return "a whole number" if variable.type == "int" else "a number"
    return ""


def _unknown(catalog: Catalog, name: str) -> str:
    text = f"{catalog.engine} {catalog.version} reads no variable {name}"
    having = [version for version in releases(catalog.engine) if catalog.of(version).variable(name)]
    if having:
        many = len(having) > 1
        return f"{text}; " + (f"{catalog.engine} {having[0]} to {having[-1]} did" if many else f"{having[0]} does")
    return hints.meant(text, name, catalog.variables(), 0.85)
