"""`model:`, what a checkpoint is: facts from its config.json and its list of files, nothing about a launch."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from sparkloom.inputs.profile._types import Count, HubId, Inside, Maybe, Packing, Precision, Size, Strict


class Layers(Strict):
    """How many layers of each kind; a layer is counted once under what it computes."""

    attention: Maybe = Field(default=0, description="softmax attention layers (full attention)")
    sparse: Maybe = Field(
        default=0, description="softmax attention over the tokens that an indexer chooses (DSA, NSA): attention.indexer"
    )
    compressed: dict[str, Count] = Field(
        default={},
        description="attention over a compressed cache (DeepSeek-V4): layers by how many tokens one entry stands for, "
        "as {4: 21, 128: 20}; the last tokens stay whole in attention.window",
    )
    caches: dict[str, Count] = Field(
        default={},
        description="layers with a cache of their own, by tokens per entry (1: attention and sparse), where the others "
        "read theirs (DeepSeek-V4.1: kv_source_layer_ids), as {2: 3, 1: 1}; empty = all of them",
    )
    sliding: Maybe = Field(default=0, description="softmax attention over a sliding window")
    linear: Maybe = Field(default=0, description="linear attention (gated delta net) layers")
    mamba: Maybe = Field(default=0, description="Mamba-2 layers")
    moe: Maybe = Field(default=0, description="feed-forward layers with routed experts")
    dense: Maybe = Field(default=0, description="plain feed-forward layers, leading ones before the first moe included")

    @field_validator("compressed")
    @classmethod
    def _ratios(cls, layers: dict[str, int]) -> dict[str, int]:
        wrong = next((one for one in layers if len(one) > 6 or not one.isdecimal() or not 1 < int(one) <= 10**5), None)
        if wrong is not None:
            raise ValueError(f"'{wrong}' is no ratio; write tokens per entry: layers, as {{4: 21, 128: 20}}")
        return layers

    @model_validator(mode="after")
    def _caches_are_of_layers(self) -> Layers:
        having = {**self.compressed, "1": self.attention + self.sparse}
        for ratio, count in self.caches.items():
            if count > having.get(ratio, 0):
                raise ValueError(
                    f"layers.caches has {count} for a ratio of {ratio}, but layers of that kind are "
                    f"{having.get(ratio, 0)}"
                )
        return self

    def cached(self, ratio: str) -> int:
        """Layers that keep what `ratio` tokens become: those with a cache of their own."""
        having = self.attention + self.sparse if ratio == "1" else self.compressed[ratio]
        return self.caches.get(ratio, having)

    @property
    def softmax(self) -> int:
        """Layers with keys and values, of every kind."""
        return self.attention + self.sparse + self.sliding + sum(self.compressed.values())


class Indexer(Strict):
    """What chooses the tokens of a sparse attention layer: queries of its own against one small key per token."""

    heads: Count = Field(description="index_n_heads")
    head_dim: Count = Field(description="index_head_dim: width of the key that the cache keeps for each entry")
    top_k: Count = Field(description="index_topk: entries that a step reads, however many there are")
    layers: Count | None = Field(
        default=None, description="layers with an indexer of their own, where others share it; empty = all of them"
    )
    pool: Count | None = Field(default=None, description="tokens that one key stands for (GLM-5.3-Flash: index_kpool)")
    keys: Literal["fp8", "bf16"] = Field(default="fp8", description="what the cache keeps them in; fp8 with scales")
    ratio: Count | None = Field(
        default=None, description="it chooses among the compressed entries of layers with this ratio (DeepSeek-V4: 4)"
    )


class Attention(Strict):
    q_heads: Count
    kv_heads: Count
    head_dim: Count
    v_head_dim: Count | None = Field(default=None, description="width of a value head, where it is not head_dim")
    window: Count | None = Field(
        default=None, description="tokens that a sliding layer sees, or that stay uncompressed"
    )
    sliding_q_heads: Count | None = Field(default=None, description="query heads of sliding layers, where others")
    sliding_kv_heads: Count | None = None
    sliding_head_dim: Count | None = None
    sliding_v_head_dim: Count | None = None
    kv_rank: Count | None = Field(
        default=None,
        description="latent attention: width of what the cache keeps per token, kv_lora_rank + qk_rope_head_dim",
    )
    q_rank: Count | None = Field(default=None, description="latent attention: width of the compressed query")
    rope_dim: Count | None = Field(
        default=None, description="qk_rope_head_dim: the part of a head, and of kv_rank, that carries positions"
    )
    o_rank: Count | None = Field(default=None, description="o_lora_rank: the output is projected through this width")
    o_groups: Count | None = Field(default=None, description="groups of heads that are projected so, each by itself")
    indexer: Indexer | None = None
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
    packing: Packing = Field(description="who packed the weights: quant_method in config.json")
    mixed: bool = Field(default=False, description="several precisions, listed per layer (ModelOpt MIXED_PRECISION)")
    size_gb: Size | None = Field(default=None, description="bytes to download, 10^9")
    gated: bool = Field(default=False, description="the hub asks for a token and an accepted licence")


class Part(Strict):
    """What a checkpoint holds beside the layers above: a vision tower, a table of n-grams."""

    size_gb: Size = Field(description="bytes in the checkpoint, 10^9: the sum of its tensors in the index")
    parameters_b: Size | None = None
    lives: Literal["memory", "disk", "unused"] = Field(
        default="memory",
        description="where this launch has it: memory = beside the weights, disk = a table on NVMe of which a step "
        "reads a few rows, unused = downloaded and never loaded",
    )
    split: bool = Field(default=False, description="the ranks of a tensor group share it; false = a copy on each")


class Mtp(Strict):
    layers: Count = Field(description="multi-token-prediction layers inside the checkpoint")
    size_gb: Size | None = Field(
        default=None,
        description="bytes of all of them, 10^9, from the index; computed from the model's layers if empty",
    )
    precision: Precision = Field(default="bf16", description="stored precision of those layers; rarely quantized")
    accept_length: dict[str, Annotated[float, Field(ge=1, le=64)]] = Field(
        default={}, description="measured tokens per verification step, by 'steps/draft tokens'"
    )


class Draft(Strict):
    """A second checkpoint that speculation loads beside the model; fetched and verified like it."""

    id: HubId = Field(description="hub id, org/name")
    revision: Inside | None = None
    size_gb: Size | None = Field(default=None, description="bytes to download and to hold, 10^9")


class Measured(Strict):
    weights_gib_per_rank: dict[str, Size] = Field(default={}, description="by 'tp4-ep4'")
    load_seconds: Size | None = None


class Named(Strict):
    """Which checkpoint: enough to spell a launch, not to say whether it fits."""

    id: HubId = Field(description="hub id, org/name")
    revision: Inside | None = Field(
        default=None, description="commit on the hub; empty = resolved and pinned at deploy"
    )
    runs_unpinned_code_of: list[HubId] = Field(
        default=[],
        description="consent by name: trust_remote_code may run what these publish at the first deploy, which locks it",
    )
    file: Inside | None = Field(
        default=None, description="one file of the repository, where an engine wants a file (GGUF)"
    )
    draft: Draft | None = Field(default=None, description="draft model that speculation loads from the hub as well")


class Model(Named):
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
    parts: dict[str, Part] = Field(
        default={}, description="by name: what no layer above is, as 'vision tower' or 'n-gram table'"
    )
    mtp: Mtp | None = None
    measured: Measured = Field(default_factory=Measured)
    source: str = Field(description="where these facts come from and how sure they are")

    def __hash__(self) -> int:
        """One object is one model for as long as it lives: caches ask thousands of times, and mappings have no hash."""
        return id(self)

    @model_validator(mode="after")
    def _parts_agree(self) -> Model:
        pairs = (("moe", self.experts, "experts"), ("mamba", self.mamba, "mamba"), ("linear", self.linear, "linear"))
        for kind, part, name in pairs:
            if (getattr(self.layers, kind) > 0) != (part is not None):
                raise ValueError(
                    f"layers.{kind} = {getattr(self.layers, kind)} but model.{name} is {'given' if part else 'missing'}"
                )
        if self.loaded_gb is not None and self.loaded_gb <= 0:
            raise ValueError(
                f"parts that stay out of memory are more than checkpoint.size_gb = {self.checkpoint.size_gb:g}, which "
                "counts them; write the sum of all files"
            )
        self._attention_agrees()
        if self.experts and self.experts.active > self.experts.routed:
            raise ValueError(
                f"experts.active = {self.experts.active} is more than experts.routed = {self.experts.routed}"
            )
        return self

    def _attention_agrees(self) -> None:
        indexer, layers = self.attention.indexer, self.layers
        if layers.sparse and indexer is None:
            raise ValueError(f"layers.sparse = {layers.sparse} but attention.indexer is missing")
        if indexer and indexer.ratio is not None and str(indexer.ratio) not in layers.compressed:
            ratios = ", ".join(layers.compressed) or "none"
            raise ValueError(
                f"attention.indexer.ratio = {indexer.ratio} is no ratio of layers.compressed, which has {ratios}"
            )

    @property
    def loaded_gb(self) -> float | None:
        """Of the checkpoint's bytes those that come into memory, 10^9; a table on disk is downloaded and stays."""
        size = self.checkpoint.size_gb
        return None if size is None else size - sum(p.size_gb for p in self.parts.values() if p.lives != "memory")
