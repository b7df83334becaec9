"""Which keys a K3s release takes in its configuration: facts read from its source (scripts/oracle/k3s.py).

A server only warns of a key that it does not know and goes on without it (pkg/configfilearg/parser.go); an agent ends.
A misspelt key would thus be lost on a server without a word, so it is refused here, before any node is touched.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from sparkloom.base.errors import InputError, Problem, did_you_mean
from sparkloom.render.k3s.options import release as order

DATA = Path(__file__).resolve().parent
SECRET = re.compile(r"token|secret|password|key")  # what is shown to whoever reads the output


def releases() -> list[str]:
    """Whose flags are known, the oldest first."""
    names = (path.name.removeprefix("flags-").removesuffix(".json") for path in DATA.glob("flags-v*.json"))
    return sorted(names, key=order)


@cache
def facts(release: str) -> dict[str, Any]:
    """Of this release, or of one before it with the same minor: K3s takes no flag away between two of these."""
    near = [one for one in releases() if order(one)[:2] == order(release)[:2] and order(one) <= order(release)]
    if not near:
        expected = f"one of {', '.join(releases())}, or a later patch of these"
        message = f"k3s_version: nothing is known of {release}'s flags; expected {expected}"
        cure = "else make its facts with scripts/oracle/k3s.py"
        raise InputError.single("versions.yml", f"{message}; {cure}", rule="unknown-release")
    read: dict[str, Any] = json.loads((DATA / f"flags-{near[-1]}.json").read_text())
    return read


def known(release: str, command: str) -> dict[str, str]:
    """{key: type}, aliases with them."""
    taken = {name: flag for name, flag in facts(release)["flags"].items() if command in flag["commands"]}
    return {word: flag["type"] for name, flag in taken.items() for word in (name, *flag["aliases"])}


def require(release: str, command: str, config: Mapping[str, Any], where: str) -> None:
    """Refuse a configuration with a key that the release does not take, or a value of another kind."""
    types, problems = known(release, command), list[Problem]()
    for key, value in config.items():
        name = key.removesuffix("+")
        if name not in types:
            fix = _elsewhere(name, command) or did_you_mean(name, types) or "; take it out"
            found = "" if SECRET.search(key) else f" (found {value!r})"
            message = f"'{key}' is no flag of k3s {command} {release}{found}{fix}"
            problems.append(Problem(where, 0, 0, message, "unknown-key"))
        elif not _fits(types[name], value):
            message = f"{key}: found {value!r}; k3s {command} expects {_EXPECTED[types[name]]}"
            problems.append(Problem(where, 1, 1, message, "wrong-type"))
    if problems:
        raise InputError(problems)


def _elsewhere(name: str, command: str) -> str:
    """Of a flag that another release takes."""
    having = [release for release in releases() if name in known(release, command)]
    if not having:
        return ""
    return f"; {having[0]} has it: take it out, or another k3s_version in versions.yml ({', '.join(having)})"


_EXPECTED = {
    "bool": "true or false",
    "int": "a number",
    "duration": "a duration as 10m",
    "string": "one text",
    "list": "a text or a list of them",
}


def _fits(kind: str, value: Any) -> bool:
    if kind == "bool":
        return isinstance(value, bool)
    values = value if kind == "list" and isinstance(value, list) else [value]
    taken = int if kind == "int" else (str, int)
    return all(isinstance(item, taken) and not isinstance(item, bool) for item in values)
