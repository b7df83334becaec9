"""keys.yml and the groups as the scripts read them: by hash and by name, with a version that changes with them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sparkloom.base.errors import InputError
from sparkloom.inputs.client_keys import Key
from sparkloom.render.router import Group


def table(groups: Iterable[Group], keys: Iterable[Key]) -> dict[str, Any]:
    """Of `keys` only what the router must know; hashes without their algorithm, as it computes one alone."""
    listed = list(groups)
    return _table(keys, [set(group.names) for group in listed], _models(listed))


def rekeyed(told: Mapping[str, Any], keys: Iterable[Key]) -> dict[str, Any]:
    """The same models with other keys: what a table says of them is enough, so no inventory is asked again."""
    called: dict[str, set[str]] = {}
    for name, model in told["models"].items():
        called.setdefault(model["id"], set()).add(name)
    return _table(keys, list(called.values()), told["models"])


def _table(keys: Iterable[Key], called: Sequence[set[str]], models: Mapping[str, Any]) -> dict[str, Any]:
    """`called`: all names of each model."""
    told = {"keys": {key.hash.partition(":")[2]: _who(key, called) for key in keys}, "models": dict(models)}
    canonical = json.dumps(told, sort_keys=True).encode()
    return {"version": f"v{hashlib.sha256(canonical).hexdigest()[:16]}", **told}  # a letter: 12e45 would be a number


def _who(key: Key, called: Sequence[set[str]]) -> dict[str, Any]:
    who: dict[str, Any] = {"name": key.name}
    if key.models != "all":
        opened = {name for names in called if names & set(key.models) for name in names}
        who["models"] = dict.fromkeys(sorted(opened), True)
    limits = {"requests": key.requests_per_minute, "tokens": key.tokens_per_minute, "at_once": key.requests_at_once}
    for name, value in {**limits, "ends": key.ends}.items():
        if value is not None:
            who[name] = value
    return who


def _models(groups: list[Group]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for group in groups:
        for name in group.names:
            if name in made:
                message = f"'{name}' would be the name of two models: {made[name]['id']} and {group.name}; change one"
                raise InputError.single("serve", message, rule="double-name")
            entry = json.dumps(_entry(group, name))
            made[name] = {"id": group.name, "name": group.engine_name, "group": group.name, "entry": entry}
            made[name] |= {"counted": group.counted, "sleeps": bool(group.waker)}
            made[name]["share"] = max(1, (group.at_once + group.waiting) // 2)
    return made


def _entry(group: Group, name: str) -> dict[str, Any]:
    """As /v1/models shows it; an alias says of what."""
    alias = {} if name == group.name else {"root": group.name}
    return {"id": name, "object": "model", "created": 0, "owned_by": "sparkloom", **alias, **group.facts}
