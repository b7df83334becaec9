"""How a model is cut over ranks, what the cut leaves on each, and whether that fits a Spark's memory."""

from __future__ import annotations

import re

from sparkloom.judge.rules.base import Hit, Hits, LaunchView
from sparkloom.launch.fabric import RING_NCCL
from sparkloom.launch.view import ModelView

ONLY_RINGS = "NCCL_IB_SUBNET_PREFIX_LEN"  # what the launcher sets for three ranks by fabric.ring, and nowhere else
CARRIED_NCCL = re.compile(r"nccl-(\d+)\.(\d+)\.(\d+)")
OWN_API = ("data_parallel_external_lb", "data_parallel_hybrid_lb")


def ranks_divide_nodes(view: LaunchView) -> Hits:
    ranks = view.tp * view.pp * view.dp
    if ranks != view.nodes:
        yield Hit(f"tp {view.tp} x pp {view.pp}{_copies(view)} = {ranks} ranks on {view.nodes} nodes", "parallel")


def ep_divides(view: LaunchView) -> Hits:
    if view.tp * view.dp % view.ep:
        yield Hit(f"ep {view.ep} does not divide tp {view.tp}{_copies(view)}", "parallel")
    elif view.facts.experts and view.facts.experts % view.ep:
        yield Hit(f"ep {view.ep} does not divide the {view.facts.experts} experts", "parallel")


def _copies(view: LaunchView) -> str:
    return f" x dp {view.dp}" if view.dp > 1 else ""


def kv_heads_split(view: LaunchView) -> Hits:
    heads, queries = view.facts.kv_heads, view.facts.q_heads
    if queries and queries % view.tp:
        yield Hit(f"{queries} attention heads cannot be split over tp {view.tp}", "parallel")
    elif heads and (heads % view.tp if heads >= view.tp else view.tp % heads):
        yield Hit(f"{heads} KV heads cannot be split over tp {view.tp}", "parallel")


def nvfp4_expert_width(view: LaunchView) -> Hits:
    width, share = view.facts.expert_inter, max(1, view.tp // view.ep)
    if width and view.facts.gated is not False and (width % share or (width // share) % 64):
        yield Hit(f"expert width {width} over {share} ranks is {width / share:g}, not a multiple of 64", "parallel")


def flashinfer_merge_threads(view: LaunchView) -> Hits:
    heads, size = view.facts.q_heads, view.facts.head_dim
    if view.attention != "flashinfer" or not heads or not size:
        return
    own = heads // view.tp
    if own * (size // 8) > 1024:
        message = f"{own} query heads of {size} on one rank need {own * (size // 8)} threads to merge"
        yield Hit(message, "attention_backend")


def vllm_expert_ranks(view: LaunchView) -> Hits:
    if view.ep != view.tp * view.dp:
        yield Hit(f"ep {view.ep} at tp {view.tp} x dp {view.dp}", "parallel")


def vllm_copies(view: LaunchView) -> Hits:
    size = view.number("data_parallel_size")
    if size is not None and size != view.dp:
        yield Hit(f"data_parallel_size is {size:g} beside parallel.dp {view.dp}", "data_parallel_size")
    elif view.dp > 1 and isinstance(view, ModelView) and not view.model.experts:
        yield Hit(f"parallel.dp {view.dp} of a dense model: its copies share nothing", "parallel")
    for flag in OWN_API:
        if view.on(flag):
            yield Hit(f"{flag} gives each copy an API of its own, and only rank 0 is reached", flag)


def nccl_ring_release(view: LaunchView) -> Hits:
    if ONLY_RINGS not in view.env:
        return
    told = [tuple(map(int, match.groups())) for name in view.carries if (match := CARRIED_NCCL.fullmatch(name))]
    if not told:
        yield Hit(f"three ranks in a ring, and nothing says that the image's NCCL is {RING_NCCL} or newer", "parallel")
    elif max(told) < tuple(map(int, RING_NCCL.split("."))):
        found = ".".join(map(str, max(told)))
        yield Hit(f"three ranks in a ring, and engine.carries says NCCL {found}", "parallel")


def weights_exceed_memory(view: LaunchView) -> Hits:
    weights, free = view.facts.weights_gib_per_rank(view.tp, view.pp, view.ep), view.platform.free_gib
    if weights is not None and weights >= free:
        yield Hit(f"weights of {weights:.0f} GiB per rank do not fit in {free:.1f} GiB", "parallel")


def mem_fraction_too_low(view: LaunchView) -> Hits:
    fraction = view.number("mem_fraction_static")
    weights, free = view.facts.weights_gib_per_rank(view.tp, view.pp, view.ep), view.platform.free_gib
    if fraction is None or weights is None or weights >= free:
        return
    mamba = (view.facts.mamba_slot_gib or 0.0) * (view.number("max_mamba_cache_size") or 0.0) / view.tp
    need = (weights + mamba) / free
    if fraction <= need:
        wanted = f"weights of {weights:.1f} GiB and state of {mamba:.1f} GiB per rank alone need {need:.3f}"
        yield Hit(f"mem_fraction_static is {fraction:g}, but {wanted}", "mem_fraction_static")


def mamba_pool_limits_concurrency(view: LaunchView) -> Hits:
    slots, running = view.number("max_mamba_cache_size"), view.number("max_running_requests")
    carried = (slots or 0) // (5 if view.speculates else 3)
    if slots and running and carried < running:
        message = f"{slots:.0f} slots carry {carried:.0f} requests, not {running:.0f}"
        yield Hit(message, "max_mamba_cache_size")
