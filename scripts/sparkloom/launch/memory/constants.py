"""What a launch asks of memory, in one language for all engines; and the few numbers that no configuration file gives.

Each was measured on GB10; each says where. The speed model has four of them, the same for all models, engines and
counts of Sparks: the share of the memory's bandwidth that decoding reaches, the time of a layer beside its bytes, and
start and hop of an all-reduce.
"""

from __future__ import annotations

from dataclasses import dataclass

from sparkloom.inputs.platform import GB10
from sparkloom.inputs.precision import weight

GIB = 2**30
_POSTS = "forum posts and logs of four DGX Sparks with SGLang 0.5.10 to 0.5.13, 2026"


@dataclass(frozen=True, slots=True)
class Figure:
    """`value` is None where a fact is missing; `formula` then says which."""

    value: float | int | None
    formula: str
    origin: str = "computed"

    @property
    def number(self) -> float:
        """The value to compute with; nought where a fact is missing."""
        return float(self.value or 0)

    @property
    def shown(self) -> float | int | None:
        """The value as JSON gives it: whole numbers whole, others to four digits behind the point."""
        return round(self.value, 4) if isinstance(self.value, float) else self.value


# `scripts/bench/fit_speed.py` finds these two, from rows that are marked for it only.
_FITTED = "fitted by scripts/bench/fit_speed.py to the runs that scripts/docs/speed_rows.yml marks for it"
BANDWIDTH_SHARE = Figure(0.78, "share of 273 GB/s that decoding reaches", _FITTED)
LAYER_S = Figure(
    72e-6, "seconds of a layer beside its bytes, whatever is on the wire: launches, small kernels", _FITTED
)
# These two are no fit: two measurements of the collective alone, solved for the start and one hop. A ring of n Sparks
# makes 2 (n - 1) hops, and each rank sends 2 (n - 1) / n of the message over its rail.
_NCCL = "nccl-tests at 32 to 48 KB: 38 us between two Sparks (dgx-spark-playbooks 103), 59 us between four (b12x 295)"
ALL_REDUCE_START_S = Figure(25e-6, "seconds before the first byte of an all-reduce moves: launch and host proxy", _NCCL)
ALL_REDUCE_HOP_S = Figure(4.4e-6, "seconds per hop of an all-reduce's ring", _NCCL)
ALL_REDUCE_SOCKET_S = Figure(
    490e-6,
    "seconds per all-reduce of four Sparks over TCP sockets (0.3 to 1.2 ms seen, the middle of 11 points); "
    "other counts in RoCE's proportion",
    _POSTS,
)
# Prompts: three more, found by the same script from the times to the first token of the same runs.
BF16_FLOPS = Figure(56e12, "operations per second of a prompt's matrices in BF16", _FITTED)
ATTENTION_FLOPS = Figure(45e12, "operations per second of a prompt's attention", _FITTED)
UNPACKED = Figure(0.83, "speed of kernels that unpack weights to 16 bits, BF16 = 1", _FITTED)
PREFILL_SPREAD = Figure(
    1.6, "factor around a time to the first token within which nine of ten held-out runs lie", "docs/capacity.md"
)
# Nine of ten runs that the constants have not seen lie within it, on one, two and four Sparks alike (a test counts).
SPREAD = Figure(1.25, "factor around a prediction within which nine of ten held-out runs lie", "docs/capacity.md")
UNSEEN_SPREAD = Figure(1.5, "the same for a count of Sparks that no run of ours has", "assumed")
# What is gone from the 121.6 GiB before the first weight is read: kernel, Kubernetes, CUDA context, NCCL buffers,
# the engine's own processes.
TAKEN_BEFORE_LOAD_GIB = Figure(
    round(GB10.usable_gib - GB10.free_before_load_gib, 2),
    "121.6 GiB - 100.7 GiB free before load (100.7 to 104.2 seen, the least is planned with)",
    _POSTS,
)
# One Spark without the four-node stack around it: system, desktop services, container runtime.
BARE_HOST_GIB = Figure(8.0, "system and services of a single Spark; not measured, generous", "assumed")
# Several Sparks whose owners serve with vLLM at 0.85 to 0.90: their idle nodes have more free than the four above.
BEST_SEEN_GIB = Figure(
    9.0,
    "as idle nodes have where vLLM serves at 0.90",
    "published vLLM recipes of two to eight Sparks at 0.85 to 0.90; another pair never had more than 102.2 free",
)
# Between an idle node and the first weight: CUDA context, NCCL buffers, the engine's own processes. Least and most.
ENGINE_START_GIB = (1.0, 4.0)  # assumed for several nodes: 1.8 to 2 GiB were logged for NCCL alone, on other machines
ENGINE_START_ALONE_GIB = (0.0, 1.0)  # assumed
# Facts of a model and the size of its checkpoint may differ by what is no tensor of a layer: towers, drafting layers.
WEIGHTS_AGREE = 0.15
LOAD_OVERHEAD_GIB = Figure(
    4.5, "beside quantized tensors while loading: scale layouts, workspaces, allocator (2.2 to 5.7 seen)", _POSTS
)
LOAD_OVERHEAD_LEAST_GIB = Figure(2.2, "the least that was seen beside quantized tensors while loading", _POSTS)
LOAD_OVERHEAD_PLAIN_GIB = Figure(1.2, "beside BF16 tensors while loading: allocator", "one log, Gemma-4-31B")
GRAPHS_GIB = Figure(2.7, "CUDA graphs up to a batch of 8", "capture log of Nemotron-3-Ultra on four Sparks")
GRAPHS_LEAST_GIB = Figure(
    0.7, "the least that vLLM told of its CUDA graphs on one Spark", "boot logs of vLLM 0.20, 2026-05"
)
GRAPH_PER_BATCH_GIB = Figure(2 / 1024, "each batch size above 8", "SGLang's own reserve: 2 MiB per batch size")
# Four-bit integers in groups of 32 weigh this much more than in groups of 128, and no checkpoint's name tells which.
SMALL_GROUPS = weight("int4-g32") / weight("int4")
# Below this the host starves: no OOM kill on unified memory, the machine wedges until it is power-cycled.
HOST_FLOOR_GIB = Figure(2.0, "must stay free for activations, JIT compilers (MAX_JOBS=2) and the host", "assumed")
# Where the node's memory guard stops an engine: roles/node_base says it, a site may say otherwise (a test compares).
GUARD_FLOOR_GIB = Figure(8.0, "MemAvailable below which the memory guard stops an engine", "node_base_memory_floor_gib")
# Where others are served on the same Spark, the page cache of a load is memory that they must not need meanwhile.
LOADED_FILE_GIB = Figure(
    4.7, "page cache of one file of a checkpoint while it is read: files of 5 GB are usual", "assumed"
)
# A plan's headroom is careful: it starts from the least that was free before a load, and MemAvailable counts page
# cache. SGLang's `avail mem` is MemAvailable on an integrated GPU (srt/utils/common.py): the guard's figure.
HEADROOM_CARE_GIB = Figure(
    7.7, "more was available after the start than planned", "one log: Ultra at 0.9, planned 7.4, 15.09 after capture"
)
# Half of the 3,072 tokens that the posts' requests generate: the context a request has on average.
LIVE_TOKENS = Figure(1536, "tokens of context per running request on average", "half of 3,072 generated tokens")
ACCEPTANCE = Figure(
    0.72,
    "chance that one more draft token is accepted, where a model's accept length was not measured",
    "accept lengths 1.81, 2.67 and 2.95 at 1, 3 and 5 draft steps of Nemotron-3-Super",
)
# Prose that nobody could foresee, and code that repeats itself: published chances of DeepSeek's, GLM's and Qwen's MTP.
ACCEPTANCE_RANGE = (0.5, 0.9)
# What is measured without graphs, and with a pipeline, beside the same model with graphs, or without a pipeline.
EAGER_AT_WORST, PIPELINE_AT_WORST = 0.66, 0.55
# Share of a batch's tokens that wake experts of their own where prompts are alike, and in a verification's drafts.
APART_AT_BEST = 0.5


@dataclass(frozen=True, slots=True)
class Speculation:
    steps: int
    drafts: int  # positions that one verification step computes
    key: str  # as profiles name a measured accept length

    @property
    def most(self) -> int:
        """No verification step yields more tokens than it checks, nor more than the drafting steps and one."""
        return min(self.steps + 1, self.drafts)


@dataclass(frozen=True, slots=True)
class Requirements:
    fraction: float
    fraction_flag: str
    fraction_given: bool
    context: int
    context_flag: str
    kv_element: float
    state_element: float
    running: int | None  # the profile's own ceiling
    running_flag: str
    slots: int | None = None
    slots_flag: str = ""
    slots_per_request: int = 1
    radix: bool = True
    graph_batch: int | None = None  # None: graphs are off
    eager: bool = False  # because the profile turned them off
    short_pool: bool = False  # starts with a pool shorter than its context, so a shorter context gains nothing
    speculation: Speculation | None = None
    chunk: int = 8192  # tokens of a prompt computed at once
    ahead: int = 0  # tokens prefilled at once, which a sliding layer keeps beside its window
    elastic: bool = False  # told to shorten its context to what the cache holds
    tokens: int | None = None  # the pool's, whatever its share of memory could hold
    whole_window: bool = False  # sliding layers keep every token


def drafts(tokens: object) -> Speculation | None:
    if not isinstance(tokens, int) or isinstance(tokens, bool) or tokens < 1:
        return None
    return Speculation(tokens, tokens + 1, f"{tokens}/{tokens + 1}")


def element(dtype: str) -> float:
    """Bytes per stored value; engines keep the model's bf16 unless told otherwise."""
    if dtype.startswith("fp8") or dtype.startswith("q8"):
        return 1.0
    return 0.5625 if dtype.startswith(("fp4", "nvfp4", "q4")) else 2.0


def state_element(dtype: str) -> float:
    return 2.0 if dtype in {"float16", "bfloat16"} else 4.0


def all_reduce_s(ranks: int, message: float = 0.0, *, sockets: bool = False) -> float:
    """Seconds of one all-reduce of `message` bytes between so many Sparks; nothing on one."""
    if ranks < 2:
        return 0.0
    hops = 2 * (ranks - 1)
    start = ALL_REDUCE_START_S.number + hops * ALL_REDUCE_HOP_S.number
    if sockets:
        four = ALL_REDUCE_START_S.number + 6 * ALL_REDUCE_HOP_S.number
        start *= ALL_REDUCE_SOCKET_S.number / four
    return start + hops / ranks * message / (GB10.rail_gb_s * 1e9)
