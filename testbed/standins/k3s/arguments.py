"""The command line and config.yaml, read as K3s reads them (pkg/configfilearg and its flag library, in our own words).

A server leaves out keys that it does not know, with a warning; an agent ends.
"""

from __future__ import annotations

import json
import pkgutil
import re
import sys
from pathlib import Path
from typing import Any

import yaml

CONFIG = "/etc/rancher/k3s/config.yaml"
TRUE, FALSE = ("1", "t", "T", "true", "TRUE", "True"), ("0", "f", "F", "false", "FALSE", "False")


class BadFlag(Exception):
    """What K3s' flag library says before it ends."""


def facts() -> dict[str, Any]:
    data = pkgutil.get_data(__name__, "flags.json")
    assert data
    read: dict[str, Any] = json.loads(data)
    return read


def flags(command: str) -> dict[str, tuple[str, str]]:
    """{every spelling: (name, type)} of one command."""
    flags = {}
    for name, flag in facts()["flags"].items():
        if command in flag["commands"]:
            flags |= dict.fromkeys((name, *flag["aliases"]), (name, flag["type"]))
    return flags


def from_file(path: Path) -> list[str]:
    """config.yaml and its drop-ins, as words of a command line; the drop-ins by name, their ending in any case."""
    folder = Path(f"{path}.d")
    dropins = [p for p in sorted(folder.glob("*")) if p.suffix.lower() in (".yaml", ".yml")]
    files = [p for p in (path, *dropins) if p.is_file()]
    merged: dict[str, Any] = {}
    for file in files:
        for key, value in (yaml.safe_load(file.read_text()) or {}).items():
            name = str(key).removesuffix("+")
            appended = str(key).endswith("+") and name in merged
            merged[name] = [*listed(merged[name]), *listed(value)] if appended else value
    return [f"{'-' if len(k) == 1 else '--'}{k}={word(v)}" for k, value in merged.items() for v in listed(value)]


def listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def word(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def parse(command: str, words: list[str], config: str = CONFIG) -> dict[str, Any]:
    known, result = flags(command), {}
    for source in (*given(command, known, from_file(Path(config))), *words):
        match = re.fullmatch(r"--?([^=]+)(?:=(.*))?", source, re.S)
        if not match:
            raise BadFlag(f"unexpected argument: {source}")
        if match[1] not in known:
            raise BadFlag(f"flag provided but not defined: -{match[1]}")
        name, kind = known[match[1]]
        value = typed(name, kind, "true" if match[2] is None else match[2])
        result[name] = [*result.get(name, []), value] if kind == "list" else value
    return result


def given(command: str, known: dict[str, tuple[str, str]], words: list[str]) -> list[str]:
    kept = []
    for each in words:
        name = each.lstrip("-").split("=", 1)[0]
        if command == "server" and name not in known:
            print(
                f'level=warning msg="Unknown flag --{name} found in config.yaml, skipping"', file=sys.stderr, flush=True
            )
        else:
            kept.append(each)
    return kept


def typed(name: str, kind: str, text: str) -> Any:
    if kind == "bool":
        if text not in TRUE + FALSE:
            raise BadFlag(f'invalid boolean value "{text}" for -{name}: parse error')
        return text in TRUE
    if kind == "int":
        if not re.fullmatch(r"-?\d+", text):
            raise BadFlag(f'invalid value "{text}" for flag -{name}: parse error')
        return int(text)
    if kind == "duration" and not re.fullmatch(r"(\d+(\.\d+)?(ns|us|ms|s|m|h))+", text):
        raise BadFlag(f'invalid value "{text}" for flag -{name}: parse error')
    return text
