"""Weights and state of one rank against what a Spark has free."""

from __future__ import annotations

from sparkloom.judge.rules.base import Hit, Hits, LaunchView


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
