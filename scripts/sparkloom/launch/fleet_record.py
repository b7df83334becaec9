"""What runs on a site, group by group, as it was written when each was proved: build/<site>/fleet.json.

A plan keeps what stands there where it is. `sparkloom fleet plan --json` has the same shape, so that one plan can be
held against another before anything runs.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from sparkloom.base import files, repository
from sparkloom.base.errors import InputError
from sparkloom.launch.groups import Running
from sparkloom.onnode.now.labels import ONLY_KEY

FILE = "fleet.json"


def path(site: str) -> Path:
    return repository.kept(site) / FILE


def read(file: Path, *, must: bool = False) -> dict[str, Running]:
    """By name; empty where nothing was recorded, which `must` refuses."""
    try:
        groups = json.loads(file.read_text(encoding="utf-8"))["groups"]
        return {running.name: running for running in map(_running, groups) if running.nodes}
    except FileNotFoundError:
        if not must:
            return {}
        message = "no such file; expected what `sparkloom fleet plan --json` writes"
        raise InputError.single(str(file), message, rule="missing-file") from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        message = "no record of groups; expected what `sparkloom fleet plan --json` writes"
        raise InputError.single(str(file), message, rule="bad-record") from None


def write(file: Path, groups: Iterable[Running]) -> None:
    """What runs now, whole or not at all."""
    file.parent.mkdir(parents=True, exist_ok=True)
    files.write(file, json.dumps({"groups": [_entry(one) for one in groups]}, indent=1) + "\n")


def _entry(one: Running) -> dict[str, Any]:
    kept = {key: getattr(one, key) for key in ("name", "profile", "nodes", "vf", "fraction")}
    return kept | {"secrets": {"engine_key": one.engine_key}}


def _running(data: dict[str, Any]) -> Running:
    vf, fraction = data.get("vf"), data.get("fraction")
    return Running(
        name=str(data["name"]),
        profile=str(data["profile"]),
        nodes=tuple(str(node) for node in data["nodes"]),
        vf=None if vf is None else int(vf),
        fraction=None if fraction is None else float(fraction),
        only=(data.get("secrets") or {}).get("engine_key") == ONLY_KEY,
    )
