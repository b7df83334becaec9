"""What capacity needs to know of a launch, and nothing else: facts, topology, the engine's flags."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sparkloom.inputs.platform import GB10, Platform
from sparkloom.inputs.profile import Evidence, FlagValue, Model, Parallel
from sparkloom.launch import engines
from sparkloom.launch.resolve import Launch

LARGEST = 1e12  # beyond any number of tokens, slots or requests


def finite(value: object) -> float | None:
    """Nonsense (text, NaN) counts as not given: refusing it is the flag check's task, which names its place."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < LARGEST:
        return None
    return float(value)


@dataclass(frozen=True, slots=True)
class Subject:
    model: Model
    engine: str
    parallel: Parallel
    flags: Mapping[str, FlagValue] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    platform: Platform = GB10

    @property
    def sockets(self) -> bool:
        """Collectives go over TCP: only where somebody asked for it, or measured it so."""
        if self.text("transport"):
            return self.text("transport") == "socket"
        return self.env.get("NCCL_IB_DISABLE") == "1" or self.env.get("NCCL_NET", "").lower() == "socket"

    def with_flag(self, name: str, value: FlagValue) -> Subject:
        return replace(self, flags={**self.flags, name: value})

    def number(self, name: str) -> float | None:
        return finite(self.flags.get(name))

    def whole(self, name: str) -> int | None:
        value = self.number(name)
        return None if value is None else max(0, int(value))

    def text(self, name: str) -> str:
        value = self.flags.get(name)
        return value if isinstance(value, str) else ""

    def mapping(self, name: str) -> dict[str, Any]:
        value = self.flags.get(name)
        return value if isinstance(value, dict) else {}


def of(launch: Launch, platform: Platform = GB10) -> Subject:
    adapter = engines.get(launch.engine)
    env = {variable.name: variable.value for variable in launch.ranks[0].env} if launch.ranks else {}
    profile = launch.profile.profile
    return Subject(
        profile.model, launch.engine, profile.launch.parallel, adapter.canonical(launch.settings), env, platform
    )


def as_measured(asked: Subject, evidence: Evidence) -> Subject:
    """The launch that a measurement was made with, as far as its `config` says; the shipped one for the rest."""
    config = dict(evidence.config or {})
    split = config.pop("parallel", None)
    parallel = Parallel.model_validate(split) if isinstance(split, dict) else asked.parallel
    env = {key[4:]: str(value) for key, value in config.items() if key.startswith("env.")}
    flags = {key: value for key, value in config.items() if not key.startswith("env.")}
    return replace(asked, parallel=parallel, flags={**asked.flags, **flags}, env={**asked.env, **env})
