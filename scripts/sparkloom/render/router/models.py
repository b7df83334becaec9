"""The groups as router.lua reads them: by name, with a version that changes with them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Any

from sparkloom.base.errors import InputError
from sparkloom.render.router import Group


def table(groups: Iterable[Group]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for group in groups:
        for name in group.names:
            if name in made:
                message = f"'{name}' would be the name of two models: {made[name]['id']} and {group.name}; change one"
                raise InputError.single("serve", message, rule="double-name")
            entry = json.dumps(_entry(group, name))
            made[name] = {"id": group.name, "name": group.model or group.name, "group": group.name, "entry": entry}
            made[name] |= {"counted": group.counted, "sleeps": bool(group.waker)}
            made[name] |= {"supervisor": f"{group.name}+supervisor"} if group.health_port else {}
            made[name]["share"] = max(1, (group.at_once + group.waiting) // 2)
    version = hashlib.sha256(json.dumps(made, sort_keys=True).encode()).hexdigest()[:16]
    return {"version": f"v{version}", "models": made}  # a letter: 12e45 would be a number


def _entry(group: Group, name: str) -> dict[str, Any]:
    """As /v1/models shows it; an alias says of what."""
    alias = {} if name == group.name else {"root": group.name}
    return {"id": name, "object": "model", "created": 0, "owned_by": "sparkloom", **alias, **group.facts}
