"""Kubernetes' objects: each container of theirs as a service of a compose file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from sparkloom.base import document
from sparkloom.inputs.importers.found import short

OBJECTS = "x-kubernetes"  # beside the services: what the objects are
WHY = "an object of Kubernetes: its containers alone are read, and Sparkloom writes objects of its own"
MOST = 99  # documents of a file


def fits(text: str) -> bool:
    first = next((line for line in text.splitlines() if line.strip("- \t") and not line.startswith("#")), "")
    return first.startswith(("apiVersion:", "kind:"))


def document_of(text: str, name: str) -> document.Document:
    objects, services = list[str](), dict[str, Any]()
    whole, line = document.Document(name, {"services": services, OBJECTS: objects}, doubles=[]), 0
    for piece in re.split(r"^---.*$", text, maxsplit=MOST, flags=re.MULTILINE):
        told = piece if re.search(r"^\w", piece, re.MULTILINE) else "{}"
        one = document.parse("\n" * line + told, name, doubles=True)
        line, whole.doubles = line + piece.count("\n"), [*(whole.doubles or ()), *(one.doubles or ())]
        objects += [f"{one.where(('kind',))}: {short(str(one.data['kind']))}"] if "kind" in one.data else []
        for where, container in _containers(one.data, ()):
            title = str(container.get("name"))
            title += "'" * (title in services)
            services[title], whole.marks["services", title] = _as_service(container), one.position(where)[1:]
    return whole


def _containers(value: Any, where: document.Loc) -> Iterator[tuple[document.Loc, dict[str, Any]]]:
    for key, item in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        if where[-1:] == ("containers",) and isinstance(item, dict):
            yield (*where, key), item
        else:
            yield from _containers(item, (*where, key))


def _as_service(container: dict[str, Any]) -> dict[str, Any]:
    """Under compose's names; a variable whose value lies elsewhere has none."""
    told = {key: value for key, value in container.items() if key not in ("name", "command", "args", "env")}
    listed = container.get("env") if isinstance(container.get("env"), list) else []
    env = {str(one.get("name")): one.get("value") for one in listed or () if isinstance(one, dict)}
    return {**told, "entrypoint": container.get("command"), "command": container.get("args"), "environment": env}
