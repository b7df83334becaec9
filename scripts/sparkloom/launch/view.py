"""What rules, capacity and the engines' memory look at: one launch, or one measured row, as plain facts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Self

from sparkloom.inputs.families import Facts
from sparkloom.inputs.image_recipes import Recipe as ImageRecipe
from sparkloom.inputs.platform import GB10, Platform
from sparkloom.inputs.profile import Evidence, FlagValue, Model, Parallel

LARGEST = 1e12  # beyond any number of tokens, slots or requests
NO_FACTS = Facts()


def finite(value: object) -> float | None:
    """Nonsense (text, NaN) counts as not given: refusing it is the flag check's task, which names its place."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < LARGEST:
        return None
    return float(value)


@dataclass(frozen=True, slots=True)
class LaunchView:
    """Unknown is None or empty, never a guess."""

    engine: str
    release: str = ""
    image: str = ""
    built_from: str = ""  # the recipe of an image that no registry has
    recipe: ImageRecipe | None = None  # that recipe, where it is one of ours
    carries: frozenset[str] = frozenset()  # fixes beyond the release, as "sglang#27998" or "patch:nvfp4-ep"
    lacks: frozenset[str] = frozenset()  # fixes that are known to be missing (measured rows say so now and then)
    model_id: str = ""
    moving: frozenset[str] = frozenset()  # checkpoints of a launch that no commit pins yet
    consented: frozenset[str] = frozenset()  # those whose code may run all the same, by name
    architecture: str = ""
    packing: str = ""  # a word of inputs/precision.py
    facts: Facts = NO_FACTS
    nodes: int = 1
    tp: int = 1
    pp: int = 1
    dp: int = 1
    ep: int = 1
    flags: Mapping[str, FlagValue] = field(default_factory=dict)  # under the engine's oldest names
    env: Mapping[str, str] = field(default_factory=dict)
    partial: bool = False  # a flag that is not given is unknown (a measured row), not at its default (a launch)
    platform: Platform = GB10
    egress: bool = False  # the site lets its engines connect elsewhere
    hopeful: bool = False  # what is known as a range only is taken at its friendly end

    def split(self, parallel: Parallel) -> Self:
        return replace(self, nodes=parallel.nodes, tp=parallel.tp, pp=parallel.pp, dp=parallel.dp, ep=parallel.ep)

    def with_flag(self, name: str, value: FlagValue) -> Self:
        return replace(self, flags={**self.flags, name: value})

    def as_measured(self, evidence: Evidence) -> Self:
        """The launch that a measurement was made with, as far as its `config` says; this one for the rest."""
        config = dict(evidence.config or {})
        parallel = config.pop("parallel", None)
        env = {key[4:]: str(value) for key, value in config.items() if key.startswith("env.")}
        flags = {key: value for key, value in config.items() if not key.startswith("env.")}
        measured = replace(self, flags={**self.flags, **flags}, env={**self.env, **env})
        return measured.split(Parallel.model_validate(parallel)) if isinstance(parallel, dict) else measured

    def flag(self, name: str) -> FlagValue:
        return self.flags.get(name)

    def on(self, name: str) -> bool:
        return self.flags.get(name) is True

    def off(self, name: str) -> bool:
        """A switch that is off, given or by default."""
        return self.flags.get(name) is False or (not self.partial and self.flags.get(name) is None)

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

    @property
    def sockets(self) -> bool:
        """Collectives go over TCP: only where somebody asked for it, or measured it so."""
        if self.text("transport"):
            return self.text("transport") == "socket"
        return self.env.get("NCCL_IB_DISABLE") == "1" or self.env.get("NCCL_NET", "").lower() == "socket"

    @property
    def speculates(self) -> bool:
        return bool(self.flags.get("speculative_algorithm"))

    @property
    def moe_runner(self) -> str:
        return str(self.flags.get("moe_runner_backend") or "")

    @property
    def attention(self) -> str:
        return str(self.flags.get("attention_backend") or "")

    @property
    def eager(self) -> bool:
        return self.on("disable_cuda_graph")

    @property
    def nvfp4(self) -> bool:
        """NVFP4 weights packed by ModelOpt: the path through the engine's own FP4 kernels."""
        return self.packing == "modelopt" and self.flags.get("quantization") != "modelopt_fp8"


@dataclass(frozen=True, slots=True)
class ModelView(LaunchView):
    """One of a profile: memory and speed need all facts of its model. Rules judge measured rows too and do without."""

    model: Model = field(kw_only=True)

    @property
    def parallel(self) -> Parallel:
        return _parallel(self.nodes, self.tp, self.pp, self.dp, self.ep)


@lru_cache(maxsize=256)
def _parallel(nodes: int, tp: int, pp: int, dp: int, ep: int) -> Parallel:
    """Once for each split: a search asks for the same few thousands of times."""
    return Parallel(nodes=nodes, tp=tp, pp=pp, dp=dp, ep=ep)
