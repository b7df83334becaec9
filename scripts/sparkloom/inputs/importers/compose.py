"""Compose files: the services that start an engine, one or one per node, and what the others are for is named."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from sparkloom.base.document import Document
from sparkloom.inputs.importers import beside, containers, vocabulary
from sparkloom.inputs.importers.containers import Container
from sparkloom.inputs.importers.expansion import split
from sparkloom.inputs.importers.found import Found, Leftover, Leftovers, Programs, short, variables
from sparkloom.inputs.importers.manifests import OBJECTS
from sparkloom.inputs.importers.shell import DEFAULT, Reader
from sparkloom.inputs.importers.starts import Scope

KEPT = "x-sparkloom"  # what `sparkloom export` writes beside the services
_OPEN = re.compile(r"\$(\$|\{([^{}]*(?:\{[^{}]*\}[^{}]*)*)\}|[A-Za-z_][A-Za-z0-9_]*)")
READ = {"image", "command", "entrypoint", "environment", "container_name"}


def fits(data: dict[str, Any]) -> bool:
    return isinstance(data.get("services"), dict)


@dataclass(slots=True)
class Values:
    """What `.env` beside the file gives its variables, and which of them were asked for."""

    given: dict[str, str]
    taken: set[str] = field(default_factory=set)
    defaulted: set[str] = field(default_factory=set)


def read(document: Document, programs: Programs) -> Found | None:
    data = document.data
    values = Values({} if OBJECTS in data else beside.shown(beside.variables(document.file, ".env")))
    reader = Reader(programs, document.file)
    leftover = Leftovers()
    for name, service in data["services"].items():
        if not isinstance(service, dict):
            leftover.add(f"service {name}", "is no mapping")
            continue
        line = document.position(("services", name))[1]
        configs = _interpolated(data.get("configs") or {}, values)
        if not _service(reader, name, _interpolated(service, values), f"{document.file}:{line}", configs, values):
            leftover.add(f"service {name}: {short(str(service.get('image', '')))}", "starts no engine")
    if not reader.starts:
        return None
    for key in data:
        if key not in ("services", "version", "name", KEPT) and not key.startswith("x-"):
            leftover.add(f"{key}: {short(str(data[key]))}", "of compose; no service's engine is told of it")
    leftover += [Leftover(f"${{{name}}}", DEFAULT) for name in sorted(values.defaulted)]
    leftover += [
        Leftover(f"${{{name}}}", f"{short(values.given[name])}, from .env beside it") for name in sorted(values.taken)
    ]
    kept = _interpolated(data[KEPT], Values({})) if isinstance(data.get(KEPT), dict) else {}
    form = "Kubernetes manifest" if OBJECTS in data else "compose file"
    return Found(form, document.file, reader.starts, leftover=Leftovers([*leftover, *reader.leftover]), kept=kept)


def _service(reader: Reader, name: str, service: dict[str, Any], where: str, configs: Any, values: Values) -> bool:
    container = Container(str(service.get("image") or ""), name, files=dict(_files(service, configs)))
    named = service.get("env_file")
    files = {
        path: beside.variables(reader.file, path) for path in map(_path, named if isinstance(named, list) else [named])
    }
    for said in _environment(service, files.values(), values):
        container.leftover += containers.environment(container.env, said)
    for key, value in service.items():
        if key in READ:
            continue
        why = vocabulary.COMPOSE.get(key) or vocabulary.OPTIONS.get(vocabulary.SERVICES.get(key, ""), containers.OTHER)
        for item in value if isinstance(value, list) else [value]:
            if key == "env_file" and files[_path(item)]:
                continue
            container.leftover.add(f"service {name}: {key} {short(str(item))}", why)
            if key == "volumes":
                containers.mount(container, str(item))
    reader.containers[str(service.get("container_name") or name)] = container
    entry, command = _words(service.get("entrypoint")), _words(service.get("command"))
    if reader.words([*entry, *command], where, Scope(inside=container, depth=1), {}):
        return True
    return not entry and reader.of_image(container, command, where)


def _environment(service: dict[str, Any], files: Iterable[dict[str, str]], values: Values) -> Iterator[str]:
    """`NAME=value` as the container gets it. What `.env` has for compose itself is no engine's."""
    for found in files:
        own = {name: value for name, value in found.items() if name not in values.taken}
        yield from variables(_interpolated(own, values))
    yield from variables(service.get("environment"))


def _path(item: object) -> str:
    return str(item.get("path", "") if isinstance(item, dict) else item or "")


def _files(service: dict[str, Any], configs: Any) -> Iterator[tuple[str, str]]:
    """Texts of the file's own `configs`, by their path in the container."""
    asked = service.get("configs")
    for entry in asked if isinstance(asked, list) else []:
        source = configs.get(entry.get("source")) if isinstance(entry, dict) and isinstance(configs, dict) else None
        if isinstance(source, dict) and isinstance(source.get("content"), str):
            yield str(entry.get("target")), source["content"]


def _words(said: object) -> list[str]:
    if isinstance(said, list):
        return [str(item) for item in said]
    return split(str(said)) if said is not None else []


def _interpolated(value: Any, values: Values) -> Any:
    """`${NAME:-default}` as compose replaces it, and `$$` for a dollar."""
    if isinstance(value, dict):
        return {key: _interpolated(item, values) for key, item in value.items()}
    if isinstance(value, list):
        return [_interpolated(item, values) for item in value]
    if not isinstance(value, str):
        return value

    def replaced(match: re.Match[str]) -> str:
        if match[1] == "$":
            return "$"
        inside = match[2] if match[2] is not None else match[1]
        name, sign, other = re.fullmatch(r"(\w*)(:?[-?+=])?(.*)", inside, re.DOTALL).groups()  # type: ignore[union-attr]
        sign, given = sign or "", values.given.get(name)
        if given or (given is not None and not sign.startswith(":")):
            values.taken.add(name)
            return str(_interpolated(other, values)) if sign.endswith("+") else given
        if sign.endswith("-"):
            values.defaulted.add(name)
            return str(_interpolated(other, values))
        return "" if sign.endswith("+") else f"${{{name}}}"

    return _OPEN.sub(replaced, value)
