"""Which keys a K3s release takes in its configuration: facts read from its source (scripts/oracle/k3s.py).

A server only warns of a key that it does not know and goes on without it (pkg/configfilearg/parser.go); an agent ends.
A misspelt key would thus be lost on a server without a word, so it is refused here, before any node is touched.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal

from sparkloom.base.errors import InputError, Problem, did_you_mean

DATA = Path(__file__).resolve().parent
Command = Literal["server", "agent"]


def releases() -> list[str]:
    return sorted(path.name.removeprefix("flags-").removesuffix(".json") for path in DATA.glob("flags-v*.json"))


@cache
def facts(release: str) -> dict[str, Any]:
    path = DATA / f"flags-{release}.json"
    if not path.exists():
        raise InputError.single(
            "versions.yml",
            f"k3s_version: nothing is known of {release}'s flags{did_you_mean(release, releases())}; "
            "make its facts with scripts/oracle/k3s.py",
            rule="unknown-release",
        )
    read: dict[str, Any] = json.loads(path.read_text())
    return read


def known(release: str, command: Command) -> dict[str, str]:
    """{key: type}, aliases with them."""
    types: dict[str, str] = {}
    for name, flag in facts(release)["flags"].items():
        if command in flag["commands"]:
            types |= dict.fromkeys((name, *flag["aliases"]), flag["type"])
    return types


def require(release: str, command: Command, config: Mapping[str, Any], where: str) -> None:
    """Refuse a configuration with a key that the release does not take, or a value of another kind."""
    problems = list(_faults(known(release, command), command, release, config, where))
    if problems:
        raise InputError(problems)


def _faults(
    types: Mapping[str, str], command: str, release: str, config: Mapping[str, Any], where: str
) -> Iterator[Problem]:
    for key, value in config.items():
        name = key.removesuffix("+")
        if name not in types:
            yield Problem(
                where, 1, 1, f"'{key}' is no flag of k3s {command} {release}{did_you_mean(name, types)}", "unknown-key"
            )
        elif not _fits(types[name], value):
            yield Problem(
                where, 1, 1, f"{key}: found {value!r}; k3s {command} expects {_EXPECTED[types[name]]}", "wrong-type"
            )


_EXPECTED = {
    "bool": "true or false",
    "int": "a number",
    "duration": "a duration as 10m",
    "string": "one text",
    "list": "a text or a list of them",
}


def _fits(kind: str, value: Any) -> bool:
    if kind == "list":
        values = value if isinstance(value, list) else [value]
        return all(isinstance(item, (str, int)) and not isinstance(item, bool) for item in values)
    if kind == "bool":
        return isinstance(value, bool)
    if kind == "int":
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, (str, int)) and not isinstance(value, bool)
