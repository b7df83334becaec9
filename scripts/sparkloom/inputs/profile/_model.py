"""What a profile is: facts about a model, decisions for its launch, evidence for both."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, model_validator

from sparkloom.onnode.images.reference import DIGEST

Precision = Literal["nvfp4", "mxfp4", "fp8", "bf16", "fp32", "int4", "q2"]
LARGEST = 1_000_000_000  # no size here comes near it; a slipped digit does
Count = Annotated[int, Field(ge=1, le=LARGEST)]
Maybe = Annotated[int, Field(ge=0, le=LARGEST)]
Size = Annotated[float, Field(gt=0, le=1e6)]
Speed = Annotated[float, Field(ge=0, le=1e6)]
HUB_ID = r"^[A-Za-z0-9_][A-Za-z0-9_.-]*/[A-Za-z0-9_][A-Za-z0-9_.-]*$"


def _hub_id(text: str) -> str:
    if not re.fullmatch(HUB_ID, text) or ".." in text:
        raise ValueError(
            f"'{text}' is no hub id; write org/name as on the model's page, each beginning with a letter or digit"
        )
    return text


def _inside(text: str) -> str:
    """A folder of the model store is named after it: nothing may lead out of there."""
    if text.startswith(("/", "~")) or ".." in text.split("/") or not text.strip():
        raise ValueError(f"'{text}' leads out of the model's folder; write a name inside the repository")
    return text


HubId = Annotated[str, AfterValidator(_hub_id), Field(json_schema_extra={"pattern": HUB_ID})]
Inside = Annotated[str, AfterValidator(_inside)]
Scalar = bool | int | float | str
FlagValue = Scalar | list[Scalar] | dict[str, Any] | None


class Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, protected_namespaces=(), allow_inf_nan=False)


class Layers(Strict):
    """How many layers of each kind; a layer is counted once under what it computes."""

    attention: Maybe = Field(default=0, description="softmax attention layers (full attention)")
    sliding: Maybe = Field(default=0, description="softmax attention over a sliding window")
    linear: Maybe = Field(default=0, description="linear attention (gated delta net) layers")
    mamba: Maybe = Field(default=0, description="Mamba-2 layers")
    moe: Maybe = Field(default=0, description="feed-forward layers with routed experts")
    dense: Maybe = Field(default=0, description="plain feed-forward layers")


class Attention(Strict):
    q_heads: Count
    kv_heads: Count
    head_dim: Count
    window: Count | None = Field(default=None, description="tokens that a sliding layer sees")
    sliding_kv_heads: Count | None = None
    sliding_head_dim: Count | None = None
    kv_rank: Count | None = Field(default=None, description="latent attention: width of the compressed KV per token")
    q_rank: Count | None = Field(default=None, description="latent attention: width of the compressed query")
    output_gate: bool = Field(default=False, description="the query projection also makes a gate: twice as wide")


class Experts(Strict):
    routed: Count
    active: Count = Field(description="routed experts per token")
    inter: Count = Field(description="width of one routed expert")
    shared_inter: Maybe = Field(default=0, description="width of the shared expert(s) together; 0 = none")
    latent: Count | None = Field(default=None, description="LatentMoE: experts work in this width instead of hidden")
    gated: bool = Field(default=True, description="gate and up projection (SwiGLU); false = one up projection")


class Mamba(Strict):
    heads: Count
    head_dim: Count
    groups: Count
    state: Count
    conv: Count = 4


class Linear(Strict):
    k_heads: Count
    v_heads: Count
    head_dim: Count
    conv: Count = 4


class Precisions(Strict):
    """Stored precision per group of tensors."""

    experts: Precision | None = None
    shared: Precision | None = None
    dense: Precision | None = None
    attention: Precision = "bf16"
    mamba: Precision | None = None
    linear: Precision | None = None
    embedding: Precision = "bf16"


class Checkpoint(Strict):
    packing: Literal["modelopt", "compressed-tensors", "fp8", "bf16", "gguf"] = Field(
        description="who packed the weights"
    )
    mixed: bool = Field(default=False, description="several precisions, listed per layer (ModelOpt MIXED_PRECISION)")
    size_gb: Size | None = Field(default=None, description="bytes to download, 10^9")
    gated: bool = Field(default=False, description="the hub asks for a token and an accepted licence")


class Mtp(Strict):
    layers: Count = Field(description="multi-token-prediction layers inside the checkpoint")
    precision: Precision = Field(default="bf16", description="stored precision of those layers; rarely quantized")
    accept_length: dict[str, Annotated[float, Field(ge=1, le=64)]] = Field(
        default_factory=dict, description="measured tokens per verification step, by 'steps/draft tokens'"
    )


class Draft(Strict):
    """A second checkpoint that speculation loads beside the model; fetched and verified like it."""

    id: HubId = Field(description="hub id, org/name")
    revision: Inside | None = None


class Measured(Strict):
    weights_gib_per_rank: dict[str, Size] = Field(default_factory=dict, description="by 'tp4-ep4'")
    load_seconds: Size | None = None


class Model(Strict):
    id: HubId = Field(description="hub id, org/name")
    revision: Inside | None = Field(
        default=None, description="commit on the hub; empty = resolved and pinned at deploy"
    )
    runs_unpinned_code_of: list[HubId] = Field(
        default_factory=list,
        description="consent by name: trust_remote_code may run what these publish at the first deploy, which locks it",
    )
    file: Inside | None = Field(
        default=None, description="one file of the repository, where an engine wants a file (GGUF)"
    )
    architecture: str = Field(description="config.json architectures[0]")
    parameters_b: Size
    active_b: Size
    context: Count = Field(description="native context length in tokens")
    multimodal: bool = False
    hidden: Count
    vocab: Count
    layers: Layers
    attention: Attention
    experts: Experts | None = None
    mamba: Mamba | None = None
    linear: Linear | None = None
    dense_inter: Count | None = None
    tied_embeddings: bool = False
    precision: Precisions
    checkpoint: Checkpoint
    mtp: Mtp | None = None
    draft: Draft | None = Field(default=None, description="draft model that speculation loads from the hub as well")
    measured: Measured = Field(default_factory=Measured)
    source: str = Field(description="where these facts come from and how sure they are")

    @model_validator(mode="after")
    def _parts_agree(self) -> Model:
        pairs = (("moe", self.experts, "experts"), ("mamba", self.mamba, "mamba"), ("linear", self.linear, "linear"))
        for kind, part, name in pairs:
            if (getattr(self.layers, kind) > 0) != (part is not None):
                raise ValueError(
                    f"layers.{kind} = {getattr(self.layers, kind)} but model.{name} is {'given' if part else 'missing'}"
                )
        if self.experts and self.experts.active > self.experts.routed:
            raise ValueError(
                f"experts.active = {self.experts.active} is more than experts.routed = {self.experts.routed}"
            )
        return self


class Engine(Strict):
    name: str  # one of the folders under launch/engines
    release: str = Field(description="the official release whose dialect the image speaks")
    image: str
    digest: Annotated[str, StringConstraints(pattern=f"^{DIGEST.pattern}$")] | None = Field(
        default=None, description="empty = resolved and pinned at deploy"
    )
    carries: list[str] = Field(
        default_factory=list, description="fixes that the image has beyond its release, as 'sglang#27998'"
    )
    patches: list[str] = Field(
        default_factory=list, description="source patches that the image needs at start, by name; rules see patch:NAME"
    )


class Parallel(Strict):
    nodes: Annotated[int, Field(ge=1, le=8)]
    tp: Count
    pp: Count = 1
    ep: Count = 1

    @model_validator(mode="after")
    def _fills_the_nodes(self) -> Parallel:
        if self.tp * self.pp != self.nodes:
            raise ValueError(
                f"tp {self.tp} x pp {self.pp} = {self.tp * self.pp} ranks for {self.nodes} node(s); "
                "a Spark has one GPU, so tp x pp must equal nodes"
            )
        if self.tp % self.ep:
            raise ValueError(f"ep {self.ep} does not divide tp {self.tp}; write one of {_divisors(self.tp)}")
        return self


class LaunchSection(BaseModel):
    """`parallel:` and the engine's own flags, spelled with underscores."""

    model_config = ConfigDict(strict=True, extra="allow", frozen=True)
    __pydantic_extra__: dict[str, FlagValue]
    parallel: Parallel

    @model_validator(mode="after")
    def _numbers_are_numbers(self) -> LaunchSection:
        for name, value in self.flags.items():
            for number in _numbers(value):
                if not math.isfinite(number) or abs(number) > LARGEST:
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
    sampling: dict[str, Scalar] = Field(default_factory=dict)
    toggles: dict[str, dict[str, dict[str, Any]]] = Field(
        default_factory=dict, description="per-request switches: {thinking: {on: {...body...}, off: {...}}}"
    )


class Numbers(Strict):
    n1: Speed | None = None
    n4: Speed | None = None
    n8: Speed | None = None
    n16: Speed | None = None
    ttft_n8: Speed | None = None
    accept_length: Speed | None = None


class Evidence(Strict):
    claim: str
    status: Literal["measured", "vendor", "inferred", "unvalidated"]
    source: str
    date: Annotated[str, StringConstraints(pattern=r"^\d{4}-\d{2}(-\d{2})?$")] | None = None
    release: str | None = Field(
        default=None, description="engine release or build that was measured, when not the profile's"
    )
    image: str | None = None
    config: dict[str, FlagValue] | None = Field(
        default=None, description="launch keys as they were measured (env.NAME for environment); only what is known"
    )
    numbers: Numbers | None = None


class Profile(Strict):
    extends: str | None = Field(
        default=None,
        description="one parent profile, beside this file or shipped; its model, engine, launch and env are merged "
        "below these",
    )
    summary: str
    model: Model
    engine: Engine
    launch: LaunchSection
    env: dict[Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")], str] = Field(default_factory=dict)
    requests: Requests = Field(default_factory=Requests)
    evidence: list[Evidence] = Field(default_factory=list)

    @model_validator(mode="after")
    def _heads_and_experts_split(self) -> Profile:
        parallel, model = self.launch.parallel, self.model
        if model.attention.q_heads % parallel.tp:
            raise ValueError(
                f"launch.parallel.tp = {parallel.tp} does not divide the model's {model.attention.q_heads} query heads"
            )
        if model.experts and model.experts.routed % parallel.ep:
            raise ValueError(
                f"launch.parallel.ep = {parallel.ep} does not divide the model's {model.experts.routed} experts"
            )
        return self


def _divisors(number: int) -> str:
    return ", ".join(str(candidate) for candidate in range(1, number + 1) if number % candidate == 0)
