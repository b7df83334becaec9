"""What a fit says, whichever engine was asked, and the parts that all engines share."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from sparkloom.base import amount
from sparkloom.launch.memory import constants, state, weights
from sparkloom.launch.memory.constants import GIB, Figure, Requirements
from sparkloom.launch.view import ModelView


@dataclass(frozen=True, slots=True)
class Fit:
    """`fits` is None where a missing fact decides. `short_gib` says by how much a plan fails."""

    fits: bool | None
    reason: str
    memory: dict[str, Figure]
    limits: dict[str, Figure]
    notes: tuple[str, ...] = ()
    short_gib: float = 0.0

    def in_doubt(self, hopeful: Fit, *, measured: bool) -> Fit:
        """Neither yes nor no: what is known as a range decides, and this is its unfriendly end."""
        low, high = (fit.memory["free_before_load_gib"].value or 0 for fit in (self, hopeful))
        free = f"{low:.1f} to {high:.1f} GiB are free before the load" if low < high else ""
        known = free or "what the load and the graphs take is known as a range only"
        cure = "; playbooks/preflight.yml measures this site" if free and not measured else ""
        text = f"uncertain: {known}. At worst: {self.reason}. At best: {hopeful.reason}{cure}"
        best = {
            name: replace(figure, formula=f"where it starts: {figure.formula}")
            for name, figure in hopeful.limits.items()
            if name not in self.limits
        }
        return replace(self, fits=None, reason=text, limits={**self.limits, **best})


@dataclass(slots=True)
class Ledger:
    """Figures on the way to a fit; `put` gives the value back so that sums read like sums."""

    memory: dict[str, Figure] = field(default_factory=dict)
    limits: dict[str, Figure] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def put(self, name: str, value: float, formula: str, origin: str = "computed") -> float:
        self.memory[name] = Figure(value, formula, origin)
        return value

    def limit(self, name: str, value: float | int | None, formula: str) -> None:
        self.limits[name] = Figure(value, formula)

    def close(self, fits: bool | None, reason: str, short: float = 0.0) -> Fit:
        return Fit(fits, reason, self.memory, self.limits, tuple(self.notes), max(0.0, short))


def weigh(view: ModelView, ledger: Ledger, overhead: Figure | None = None) -> float:
    """Weights per rank: computed from the facts; where a rank was weighed, that figure is the one used."""
    model, parallel = weights.held(view), view.parallel
    tensors = weights.gib(model, parallel) * _group_doubt(view)
    plain = view.model.checkpoint.packing == "bf16"
    extra = overhead or (constants.LOAD_OVERHEAD_PLAIN_GIB if plain else constants.LOAD_OVERHEAD_GIB)
    doubt = weights.disagreement(view.model)
    if doubt and not model.measured.weights_gib_per_rank:
        ledger.notes.append(f"{doubt.text}: the {'lighter' if view.hopeful else 'heavier'} of the two is counted")
        tensors *= min(1.0, doubt.ratio) if view.hopeful else max(1.0, doubt.ratio)
    computed = tensors + extra.number
    counted = f"{tensors:.2f} GiB of tensors (parameters x stored bytes, split as the engine does)"
    formula = f"{counted} + {extra.value:g} GiB"
    measured = model.measured.weights_gib_per_rank.get(f"tp{parallel.tp}-ep{parallel.ep}")
    used = computed if measured is None or parallel.pp * parallel.dp > 1 else measured
    weighed = "as a rank was weighed; better than computed", "model.measured in the profile"
    how, origin = (formula, extra.origin) if measured is None else weighed
    ledger.put("weights_gib_per_rank", used, how, origin)
    ledger.put("weights_computed_gib_per_rank", computed, formula, extra.origin)
    return used


def _group_doubt(view: ModelView) -> float:
    """What int4 may weigh more than is computed, where neither a size nor a rank's weight bounds it."""
    model = view.model
    known = model.checkpoint.size_gb or model.measured.weights_gib_per_rank
    return 1.0 if view.hopeful or known or model.precision.experts != "int4" else constants.SMALL_GROUPS


@dataclass(frozen=True, slots=True)
class Free:
    """GiB from `least` to `most`; the same where one figure is planned with."""

    least: float
    most: float
    formula: str
    origin: str


def free_gib(view: ModelView, taken: Figure, at_best: Figure | None = None) -> Free:
    """What is free when the first weight is read: measured on the site, or the range that Sparks have shown.

    `taken` is gone of the whole machine before the load, `at_best` less; both give way to the site's own figure.
    """
    usable, measured = view.platform.usable_gib, view.platform.measured_free_gib
    if measured is not None:
        least, most = constants.ENGINE_START_GIB if view.nodes > 1 else constants.ENGINE_START_ALONE_GIB
        low, high = measured
        said = f"{low:.1f} GiB free to CUDA on the idle node with least, {high:.1f} once the page cache gives back"
        said += f", less {least:g} to {most:g} for the engine's start"
        return Free(low - most, high - least, said, "measured by preflight on this site")
    gone, less = taken.number, (at_best or taken).number
    said = f"{usable:g} - {gone:g}: {taken.formula}"
    if at_best:
        said += f"; up to {usable - less:.1f}: {at_best.formula}"
    return Free(usable - gone, usable - less, said, taken.origin)


def available(view: ModelView, ledger: Ledger, taken: Figure, at_best: Figure | None = None) -> float:
    ledger.put("usable_gib", view.platform.usable_gib, "memory that CUDA and the host share", "platform")
    found = free_gib(view, taken, at_best)
    value = found.most if view.hopeful else found.least
    return ledger.put("free_before_load_gib", value, found.formula, found.origin)


def cell(view: ModelView, needs: Requirements, ledger: Ledger) -> float:
    size = state.kv_bytes_per_token(view.model, view.parallel, needs.kv_element)
    layers = view.model.layers
    counted = f"{layers.attention} attention and {layers.sliding} sliding layers"
    each = f"keys and values x heads per rank x head width x {needs.kv_element:g} B"
    ledger.put("kv_bytes_per_token", size, f"per rank: {counted} x {each}{_further(view)}")
    _full(view, needs, ledger)
    return size


def _further(view: ModelView) -> str:
    """The kinds of layers that few models have, in a formula's words."""
    layers, said = view.model.layers, ""
    if layers.sparse:
        said += f"; {layers.sparse} sparse layers alike, with an indexer's key per token"
    for ratio, count in layers.compressed.items():
        said += f"; {count} layers with an entry per {ratio} tokens"
    return said


def _full(view: ModelView, needs: Requirements, ledger: Ledger) -> float:
    """Bytes of one request of full length on a rank: a sliding layer keeps its window and what is prefilled at once."""
    size = state.kv_of_request(view.model, view.parallel, needs.kv_element, needs.context, needs.ahead)
    sliding = view.model.layers.sliding and not needs.whole_window
    if needs.whole_window:
        size = state.kv_bytes_per_token(view.model, view.parallel, needs.kv_element, pool=False) * needs.context
    how = "sliding layers hold their window and what is prefilled" if sliding else "context x KV bytes per token"
    ledger.put("full_context_gib", size / GIB, f"one request of {needs.context:,} tokens, per rank: {how}")
    return size


def slot(view: ModelView, needs: Requirements, ledger: Ledger) -> float:
    """GiB of one state slot; 0 for models without recurrent layers."""
    size = state.slot_bytes(view.model, view.parallel, needs.state_element)
    if size:
        kind = "Mamba" if view.model.mamba else "linear attention"
        each = f"(state in {needs.state_element:g} B + convolution window in bf16)"
        ledger.put("state_mib_per_slot", size / 2**20, f"{kind} layers x {each}, split over the ranks")
    return size / GIB


def graphs(needs: Requirements, ledger: Ledger, least: Figure | None = None) -> float:
    if needs.graph_batch is None:
        return ledger.put("graphs_gib", 0.0, "no CUDA graphs")
    known = least or constants.GRAPHS_GIB
    base, each = known.number, constants.GRAPH_PER_BATCH_GIB.number
    size = base + each * max(0, needs.graph_batch - 8)
    formula = f"{base:g} + 2 MiB x batch sizes above 8 (here up to {needs.graph_batch})"
    return ledger.put("graphs_gib", size, formula, known.origin)


def full_requests(ledger: Ledger, tokens: float, needs: Requirements) -> None:
    """What the KV pool allows: the longest request, and how many of full length at once."""
    longest = int(min(needs.context, max(0, tokens)))
    ledger.limit("longest_request_tokens", longest, f"the smaller of {needs.context_flag} and the KV pool")
    ledger.limit("full_context_requests", int(tokens // needs.context), f"KV tokens // {needs.context:,}")
    if 0 < tokens < needs.context:
        less = f"less than {needs.context_flag} = {needs.context:,}: a longer request is refused"
        ledger.notes.append(f"the KV pool holds {int(tokens):,} tokens, {less}")


def requests(
    view: ModelView, needs: Requirements, ledger: Ledger, rest: float, pool: int | None = None, *, shared: bool = False
) -> Fit:
    """States for running requests and KV for at least one request of full length must fit into `rest`.

    `pool`: tokens that an engine allocates whatever room there is; another fills what is left. `shared`: states and
    cache take blocks of one pool as requests come, so that the states of one are all that must fit.
    """
    per_slot, full = slot(view, needs, ledger), _full(view, needs, ledger)
    per_token = full / needs.context
    ledger.put("kv_bytes_per_token", per_token, f"one request of {needs.context:,} tokens / its tokens")
    running = needs.running or 1
    each = needs.speculation.drafts if needs.speculation else 1  # a state behind every position of a verification
    room = max(0.0, rest)
    least = pool or needs.context  # tokens without which it does not start
    whole = least * per_token / GIB
    reserved = 1 if shared and running * each * per_slot + whole > room else running
    asked = reserved * each * per_slot
    told = f"{reserved} requests x {amount.of(each, 'position')} x bytes per slot"
    told += "; those of more as they come, out of the cache" if reserved < running else ""
    kept = ledger.put("state_pool_gib", min(asked, room), told)
    if pool:
        kv = ledger.put("kv_pool_gib", min(room - kept, whole), f"{pool:,} tokens x bytes per token, allocated at once")
    else:
        kv = ledger.put("kv_pool_gib", room - kept, "what is left - states")
    tokens = pool if pool and kv == whole else int(kv * GIB / per_token) if per_token else 0
    ledger.put("kv_tokens", tokens, "KV pool / KV bytes per token and rank")
    by_state = int(room / (each * per_slot)) if per_slot else running
    ledger.limit("max_running_requests", min(running, by_state), needs.running_flag)
    full_requests(ledger, tokens, needs)
    if shared and per_slot:
        at_once = int(room * GIB // (full + each * per_slot * GIB))
        ledger.limit("full_context_requests", at_once, f"pool // (KV of {needs.context:,} tokens + its states)")
    ledger.put("headroom_gib", rest - asked - whole, "left after states and the cache that it must have")
    if rest <= 0:
        return ledger.close(False, f"weights leave no room: {-rest:.1f} GiB are missing per rank", -rest)
    if tokens < least and not (needs.elastic and tokens):
        missing = whole - kv
        reason = f"the cache holds {tokens:,} tokens, {needs.context_flag} asks for {least:,}"
        return ledger.close(False, reason, missing)
    return ledger.close(True, f"{tokens:,} KV tokens for {amount.of(running, 'request')}")


def taken(view: ModelView) -> Figure:
    return constants.BARE_HOST_GIB if view.parallel.nodes == 1 else constants.TAKEN_BEFORE_LOAD_GIB


def drafting(view: ModelView, needs: Requirements, ledger: Ledger) -> float:
    if not needs.speculation:
        return 0.0
    draft = view.model.draft
    if draft and draft.size_gb:
        each = draft.size_gb * 1e9 / view.parallel.tp / GIB
        return ledger.put("draft_gib", each, f"{draft.id}: {draft.size_gb:g} GB, split over {view.parallel.tp}")
    if not view.model.mtp:
        return 0.0
    return ledger.put("draft_gib", weights.draft_gib(view.model, view.parallel), "MTP layers in their own precision")
