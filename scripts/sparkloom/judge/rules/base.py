"""What a rule is: one trap, declared on top, judged by one method below.

A rule never applies everywhere. Its `scope` says for which engine, releases, images, architectures and
quantizations the trap was seen; its `check` looks at the rest. `failing` and `passing` are one case each
and are run as tests.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import ClassVar

from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version

from sparkloom.base.finding import Severity
from sparkloom.inputs.families import Facts
from sparkloom.inputs.profile import FlagValue

NO_FACTS = Facts()


@dataclass(frozen=True, slots=True)
class Context:
    """Everything that a rule may look at, from a launch or from a measured row. Unknown is None, never a guess."""

    engine: str = "sglang"
    release: str = "0.5.12"
    image: str = ""
    carries: frozenset[str] = frozenset()  # fixes beyond the release, as "sglang#27998" or "patch:nvfp4-ep"
    lacks: frozenset[str] = frozenset()  # fixes that are known to be missing (measured rows say so now and then)
    model_id: str = ""
    architecture: str = ""
    packing: str = ""  # modelopt, compressed-tensors, fp8, bf16, gguf
    facts: Facts = NO_FACTS
    nodes: int = 1
    tp: int = 1
    pp: int = 1
    ep: int = 1
    flags: Mapping[str, FlagValue] = field(default_factory=dict)  # under the engine's oldest names
    env: Mapping[str, str] = field(default_factory=dict)
    partial: bool = (
        False  # a flag that is not given is not known (a measured row), instead of at its default (a launch)
    )

    def flag(self, name: str, default: FlagValue = None) -> FlagValue:
        value = self.flags.get(name)
        return default if value is None else value

    def on(self, name: str) -> bool:
        return self.flags.get(name) is True

    def off(self, name: str) -> bool:
        """A switch that is off, given or by default."""
        return self.flags.get(name) is False or (not self.partial and self.flags.get(name) is None)

    def number(self, name: str) -> float | None:
        value = self.flags.get(name)
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None

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
        return self.flags.get("disable_cuda_graph") is True

    @property
    def nvfp4(self) -> bool:
        """NVFP4 weights packed by ModelOpt: the path through the engine's own FP4 kernels."""
        return self.packing == "modelopt" and self.flags.get("quantization") != "modelopt_fp8"


@dataclass(frozen=True, slots=True)
class Scope:
    """Where a trap was seen. Every part that is given must match."""

    engine: str
    releases: str = ""  # PEP 440 specifier, as ">=0.5.12,<0.5.16"
    architecture: str = ""  # regular expression, matched from the start
    packing: str = ""  # regular expression over Context.packing
    image: str = ""  # regular expression, searched
    nodes: str = ""  # conditions on counts, as ">1" or "==4"
    tp: str = ""
    pp: str = ""
    ep: str = ""
    unless_carries: tuple[str, ...] = ()  # fixes that lift the trap, as "sglang#27998"

    def covers(self, ctx: Context) -> bool:
        return (
            self.engine in ("*", ctx.engine)
            and _counts(self.nodes, ctx.nodes)
            and _counts(self.tp, ctx.tp)
            and _counts(self.pp, ctx.pp)
            and _counts(self.ep, ctx.ep)
            and (not self.releases or within(ctx.release, self.releases))
            and (not self.architecture or re.match(self.architecture, ctx.architecture) is not None)
            and (not self.packing or re.fullmatch(self.packing, ctx.packing) is not None)
            and (not self.image or re.search(self.image, ctx.image) is not None)
            and not ctx.carries.intersection(self.unless_carries)
        )

    def __str__(self) -> str:
        parts = {
            name: getattr(self, name)
            for name in ("releases", "architecture", "packing", "image", "nodes", "tp", "pp", "ep")
        }
        said = [f"{name} {value}" for name, value in parts.items() if value]
        said += [f"unless the image carries {' or '.join(self.unless_carries)}"] if self.unless_carries else []
        return ", ".join([self.engine if self.engine != "*" else "every engine", *said])


@dataclass(frozen=True, slots=True)
class Hit:
    """One match: what was found, and the flag (or env.NAME) to point at."""

    message: str
    flag: str = ""


@dataclass(frozen=True, slots=True)
class Source:
    """Where a trap is known from."""

    what: str
    date: str = ""
    link: str = ""


class Rule:
    """Subclass with the declarations below and one `check`."""

    id: ClassVar[str]
    severity: ClassVar[Severity]
    scope: ClassVar[Scope]
    why: ClassVar[str]
    fix: ClassVar[str]
    evidence: ClassVar[tuple[Source, ...]]
    log_pattern: ClassVar[str | None] = None  # what an engine log says when this trap was sprung
    predicts_failure: ClassVar[bool] = True  # an error that a measured run would have shown (not a question of taste)
    failing: ClassVar[Context]
    passing: ClassVar[Context]

    def check(self, ctx: Context) -> Iterable[Hit]:
        raise NotImplementedError

    def judge(self, ctx: Context) -> Iterator[Hit]:
        if self.scope.covers(ctx):
            yield from self.check(ctx)


@lru_cache(maxsize=4096)
def within(release: str, releases: str) -> bool:
    """Unknown releases (an image that hides its version) are within no range: unknown is no evidence."""
    try:
        return SpecifierSet(releases, prereleases=True).contains(Version(release), prereleases=True)
    except InvalidVersion:
        return False


_COMPARE = {">=": operator.ge, "<=": operator.le, "==": operator.eq, ">": operator.gt, "<": operator.lt}


@lru_cache(maxsize=1024)
def _counts(condition: str, value: int) -> bool:
    if not condition:
        return True
    sign = condition[:2] if condition[:2] in _COMPARE else condition[:1]
    return bool(_COMPARE[sign](value, int(condition[len(sign) :])))
