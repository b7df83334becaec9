"""What runs on a site, group by group, as it was written when each was proved: build/<site>/fleet.json.

A plan keeps what stands there where it is. `sparkloom fleet plan --json` has the same shape, so that one plan can be
held against another before anything runs.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sparkloom.base import files, repository
from sparkloom.base.errors import InputError

FILE = "fleet.json"


@dataclass(frozen=True, slots=True)
class Running:
    """One group as it runs: where, with which function of each rail, and under which Secret its engine has its key."""

    name: str
    profile: str
    nodes: tuple[str, ...]  # rank 0 first
    vf: int | None = None
    fraction: float | None = None
    engine_key: str = ""
    # What only a cluster tells. `proved`: the hash of its last proved start, looked at where it sleeps.
    config_hash: str = field(default="", compare=False)  # of what was applied
    awake: bool = field(default=True, compare=False)  # a rank of it is wanted there
    whole: bool = field(default=True, compare=False)  # all its ranks are set up
    proved: str = field(default="", compare=False)

    def as_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "profile": self.profile,
            "nodes": list(self.nodes),
            "vf": self.vf,
            "fraction": self.fraction,
            "secrets": {"engine_key": self.engine_key},
        }


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
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        message = f"no record of groups ({error!r}); expected what `sparkloom fleet plan --json` writes"
        raise InputError.single(str(file), message, rule="bad-record") from None


def write(file: Path, groups: Iterable[Running]) -> None:
    """What runs now, whole or not at all."""
    file.parent.mkdir(parents=True, exist_ok=True)
    files.write(file, json.dumps({"groups": [one.as_dict() for one in groups]}, indent=1) + "\n")


def _running(data: dict[str, Any]) -> Running:
    secrets = data.get("secrets") or {}
    vf, fraction = data.get("vf"), data.get("fraction")
    return Running(
        name=str(data["name"]),
        profile=str(data["profile"]),
        nodes=tuple(str(node) for node in data["nodes"]),
        vf=None if vf is None else int(vf),
        fraction=None if fraction is None else float(fraction),
        engine_key=str(secrets.get("engine_key") or ""),
    )
