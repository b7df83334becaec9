"""What a profile is: facts about a model, decisions for its launch, evidence for both."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from sparkloom.base import amount
from sparkloom.inputs.profile._facts import Model, Named
from sparkloom.inputs.profile._types import LARGEST, Count, FlagValue, Scalar, Speed, Strict
from sparkloom.onnode.images.reference import DIGEST

ENV_NAME = r"^[A-Za-z_][A-Za-z0-9_]*$"


Form = Literal["switch", "text", "int", "float", "json"] | list[Scalar]


class Fork(Strict):
    """What an image's engine takes beyond its release. Nobody here ran its parser: all of it is its author's word."""

    name: str = Field(description="what the fork or branch is called")
    source: str = Field(description="where its code is: repository and branch or commit, or the image that has it")
    flags: dict[Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_]+$")], Form] = Field(
        default={},
        description="launch keys that it adds, or takes further values for, with the form of their values: switch, "
        "text, int, float, json, or a list of the words that it takes",
    )
    env: dict[Annotated[str, StringConstraints(pattern=ENV_NAME)], Form] = Field(
        default={}, description="environment variables that it reads beyond its release's, likewise"
    )


class Engine(Strict):
    name: str  # one of the folders under launch/engines
    release: str = Field(description="the official release whose dialect the image speaks")
    image: str
    digest: Annotated[str, StringConstraints(pattern=f"^{DIGEST.pattern}$")] | None = Field(
        default=None, description="empty = resolved and pinned at deploy"
    )
    carries: list[str] = Field(default=[], description="fixes that the image has beyond its release, as 'sglang#27998'")
    patches: list[str] = Field(
        default=[], description="source patches that the image needs at start, by name; rules see patch:NAME"
    )
    built_from: str | None = Field(
        default=None,
        description="no registry has this image: somebody's recipe that builds it, as one would look it up",
    )
    recipe: str | None = Field(
        default=None, description="our own recipe that builds the image, by name: image_recipes/NAME.yml"
    )
    fork: Fork | None = Field(
        default=None, description="an engine that is not the official release: what it takes beyond that, unchecked"
    )


class Parallel(Strict):
    nodes: Annotated[int, Field(ge=1, le=8)]
    tp: Count
    pp: Count = 1
    dp: Count = Field(
        default=1, description="copies of all but the routed experts, each on tp x pp Sparks, where the engine has them"
    )
    ep: Count = 1

    @model_validator(mode="after")
    def _fills_the_nodes(self) -> Parallel:
        if self.tp * self.pp * self.dp != self.nodes:
            copies = f" x dp {self.dp}" if self.dp > 1 else ""
            ranks, nodes = self.tp * self.pp * self.dp, amount.of(self.nodes, "node")
            raise ValueError(
                f"tp {self.tp} x pp {self.pp}{copies} = {ranks} ranks for {nodes}; "
                f"a Spark has one GPU, so tp x pp{' x dp' if copies else ''} must equal nodes"
            )
        if self.tp * self.dp % self.ep:
            whole, group = (self.tp, "tp") if self.dp == 1 else (self.tp * self.dp, "tp x dp =")
            raise ValueError(f"ep {self.ep} does not divide {group} {whole}; write one of {_divisors(whole)}")
        return self

    def as_dict(self) -> dict[str, int]:
        """As a profile writes it: `dp` only where it says something."""
        return {name: size for name, size in self.model_dump().items() if name != "dp" or size > 1}

    @property
    def expert_ranks(self) -> int:
        """Over how many ranks the routed experts are dealt, whole or in slices: copies (dp) share them."""
        return self.tp * self.dp


class LaunchSection(BaseModel):
    """`parallel:` and the engine's own flags, spelled with underscores."""

    model_config = ConfigDict(strict=True, extra="allow", frozen=True, defer_build=True)
    __pydantic_extra__: dict[str, FlagValue]
    parallel: Parallel

    @model_validator(mode="after")
    def _numbers_are_numbers(self) -> LaunchSection:
        for name, value in self.flags.items():
            # some flags count bytes, and what stands in a JSON text is the engine's to judge
            most = 1 << 40 if name.endswith("_bytes") or isinstance(value, dict) else LARGEST
            for number in _numbers(value):
                if not math.isfinite(number) or abs(number) > most:
                    raise ValueError(f"launch.{name} holds {number}, which is no size that an engine could use")
        return self

    @property
    def flags(self) -> Mapping[str, FlagValue]:
        return self.__pydantic_extra__ or {}


def _numbers(value: FlagValue) -> Iterator[float]:
    if isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _numbers(part)
    elif isinstance(value, int | float):
        yield value


class Requests(Strict):
    sampling: dict[str, Scalar] = Field(default={})
    toggles: dict[str, dict[str, dict[str, Any]]] = Field(
        default={}, description="per-request switches: {thinking: {on: {...body...}, off: {...}}}"
    )


class Numbers(Strict):
    n1: Speed | None = None
    n4: Speed | None = None
    n8: Speed | None = None
    n16: Speed | None = None
    ttft_n8: Speed | None = None
    accept_length: Speed | None = None


class Prompt(Strict):
    """What was asked while it was measured; only what is known."""

    content: Literal["prose", "code", "mixed", "structured", "counting", "random"] | None = Field(
        default=None, description="speculation is as fast as its text is easy to foresee"
    )
    input: Count | None = Field(default=None, description="tokens of one prompt")
    output: Count | None = Field(default=None, description="tokens of one answer")
    temperature: Annotated[float, Field(ge=0, le=10)] | None = None
    thinking: bool | None = None


class Evidence(Strict):
    claim: str
    status: Literal["measured", "vendor", "inferred", "unvalidated"]
    source: str
    by: str | None = Field(default=None, description="who measured it, where the source does not say")
    prompt: Prompt | None = None
    counted: Literal["decode", "request", "wall"] | None = Field(
        default=None,
        description="decode: each answer's tokens after its first over the time that they took, summed; request: its "
        "tokens over its whole request, summed; wall: all tokens over the time from first request to last token",
    )
    date: Annotated[str, StringConstraints(pattern=r"^\d{4}-\d{2}(-\d{2})?$")] | None = None
    release: str | None = Field(
        default=None, description="engine release or build that was measured, when not the profile's"
    )
    image: str | None = None
    config: dict[str, FlagValue] | None = Field(
        default=None, description="launch keys as they were measured (env.NAME for environment); only what is known"
    )
    numbers: Numbers | None = None


class Sketch(Strict):
    """What a launch is spelled from: a recipe of a model that nobody here knows has no more."""

    summary: str
    model: Named
    engine: Engine
    launch: LaunchSection
    env: dict[Annotated[str, StringConstraints(pattern=ENV_NAME)], str] = Field(default={})
    requests: Requests = Field(default_factory=Requests)
    evidence: list[Evidence] = Field(default=[])


class Profile(Sketch):
    extends: str | None = Field(
        default=None,
        description="one parent profile, beside this file or shipped; its model, engine, launch and env are merged "
        "below these",
    )
    model: Model

    @model_validator(mode="after")
    def _heads_and_experts_split(self) -> Profile:
        parallel, model = self.launch.parallel, self.model
        if self.uneven and self.engine.fork is None:
            raise ValueError(self.uneven)
        if model.experts and model.experts.routed % parallel.ep:
            raise ValueError(
                f"launch.parallel.ep = {parallel.ep} does not divide the model's {model.experts.routed} experts"
            )
        return self

    @property
    def uneven(self) -> str:
        """Heads that a tensor group cannot share evenly: no release starts so, a fork may pad them (three Sparks)."""
        tp, heads = self.launch.parallel.tp, self.model.attention
        if heads.q_heads % tp:
            return f"launch.parallel.tp = {tp} does not divide the model's {heads.q_heads} query heads"
        own = heads.sliding_q_heads
        return (
            f"launch.parallel.tp = {tp} does not divide the {own} heads of sliding layers" if own and own % tp else ""
        )


def _divisors(number: int) -> str:
    return ", ".join(str(candidate) for candidate in range(1, number + 1) if number % candidate == 0)
