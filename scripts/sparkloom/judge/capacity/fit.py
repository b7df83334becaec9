"""What a fit says, whichever engine was asked, and the parts that all engines share."""

from __future__ import annotations

from dataclasses import dataclass, field

from sparkloom.judge.capacity import constants, state, weights
from sparkloom.judge.capacity.figure import GIB, Figure
from sparkloom.judge.capacity.requirements import Demand
from sparkloom.judge.capacity.view import Subject


@dataclass(frozen=True, slots=True)
class Fit:
    """`fits` is None where a missing fact decides. `short_gib` says by how much a plan fails."""

    fits: bool | None
    reason: str
    memory: dict[str, Figure]
    limits: dict[str, Figure]
    notes: tuple[str, ...] = ()
    short_gib: float = 0.0


@dataclass(slots=True)
class Ledger:
    """Figures on the way to a fit; `put` gives the value back so that sums read like sums."""

    memory: dict[str, Figure] = field(default_factory=dict)
    limits: dict[str, Figure] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def put(self, name: str, value: float, formula: str, origin: str = "computed") -> float:
        self.memory[name] = Figure(value, formula, origin)
        return value

    def limit(self, name: str, value: float | int | None, formula: str, origin: str = "computed") -> None:
        self.limits[name] = Figure(value, formula, origin)

    def close(self, fits: bool | None, reason: str, short: float = 0.0) -> Fit:
        return Fit(fits, reason, self.memory, self.limits, tuple(self.notes), max(0.0, short))


def weigh(subject: Subject, ledger: Ledger) -> float:
    """Weights per rank: computed from the facts; where a rank was weighed, that figure is the one used."""
    model, parallel = subject.model, subject.parallel
    tensors = weights.gib(model, parallel)
    extra = load_overhead(subject)
    computed = tensors + float(extra.value or 0)
    formula = (
        f"{tensors:.2f} GiB of tensors (parameters x stored bytes, split as the engine does) + {extra.value:g} GiB"
    )
    measured = model.measured.weights_gib_per_rank.get(f"tp{parallel.tp}-ep{parallel.ep}")
    used = computed if measured is None or parallel.pp > 1 else measured
    if measured is None:
        ledger.put("weights_gib_per_rank", used, formula, extra.origin)
    else:
        ledger.put(
            "weights_gib_per_rank", used, "as a rank was weighed; better than computed", "model.measured in the profile"
        )
    ledger.put("weights_computed_gib_per_rank", computed, formula, extra.origin)
    return used


def load_overhead(subject: Subject) -> Figure:
    if subject.engine == "llamacpp":
        return Figure(0.0, "the file's size is what is loaded")
    plain = subject.model.checkpoint.packing == "bf16"
    return constants.LOAD_OVERHEAD_PLAIN_GIB if plain else constants.LOAD_OVERHEAD_GIB


def available(subject: Subject, ledger: Ledger, taken: Figure) -> float:
    usable = ledger.put("usable_gib", subject.platform.usable_gib, "memory that CUDA and the host share", "platform")
    gone = float(taken.value or 0)
    return ledger.put("free_before_load_gib", usable - gone, f"{usable:g} - {gone:g}: {taken.formula}", taken.origin)


def cell(subject: Subject, demand: Demand, ledger: Ledger) -> float:
    size = state.kv_bytes_per_token(subject.model, subject.parallel, demand.kv_element)
    layers = subject.model.layers
    ledger.put(
        "kv_bytes_per_token",
        size,
        f"per rank: {layers.attention} attention and {layers.sliding} sliding layers x keys and values "
        f"x heads per rank x head width x {demand.kv_element:g} B",
    )
    full = size * demand.context / GIB
    ledger.put(
        "full_context_gib", full, f"one request of {demand.context:,} tokens: context x KV bytes per token, per rank"
    )
    return size


def slot(subject: Subject, demand: Demand, ledger: Ledger) -> float:
    """GiB of one state slot; 0 for models without recurrent layers."""
    size = state.slot_bytes(subject.model, subject.parallel, demand.state_element)
    if size:
        kind = "Mamba" if subject.model.mamba else "linear attention"
        ledger.put(
            "state_mib_per_slot",
            size / 2**20,
            f"{kind} layers x (state in {demand.state_element:g} B + convolution window in bf16), split over the ranks",
        )
    return size / GIB


def graphs(demand: Demand, ledger: Ledger) -> float:
    if demand.graph_batch is None:
        return ledger.put("graphs_gib", 0.0, "no CUDA graphs")
    base, each = float(constants.GRAPHS_GIB.value or 0), float(constants.GRAPH_PER_BATCH_GIB.value or 0)
    size = base + each * max(0, demand.graph_batch - 8)
    return ledger.put(
        "graphs_gib",
        size,
        f"{base:g} + 2 MiB x batch sizes above 8 (here up to {demand.graph_batch})",
        constants.GRAPHS_GIB.origin,
    )


def full_requests(ledger: Ledger, tokens: float, demand: Demand) -> None:
    """What the KV pool allows: the longest request, and how many of full length at once."""
    longest = int(min(demand.context, max(0, tokens)))
    ledger.limit("longest_request_tokens", longest, f"the smaller of {demand.context_flag} and the KV pool")
    ledger.limit("full_context_requests", int(tokens // demand.context), f"KV tokens // {demand.context:,}")
    if 0 < tokens < demand.context:
        ledger.notes.append(
            f"the KV pool holds {int(tokens):,} tokens, less than {demand.context_flag} = {demand.context:,}: "
            "a longer request is refused"
        )
