"""llama.cpp's memory: layers are dealt over the nodes, and the cache has as many tokens as `ctx_size` says, no more.

Without `parallel` its server takes four requests, and each may use all of those tokens; told a number, it gives each
an equal part, unless `kv_unified` is on. None of this was weighed on GB10 by us: the sums are the engine's own rules
(build b11669 said so itself: docs/reference/real-engines.md), the host's share is assumed.
"""

from __future__ import annotations

from sparkloom.launch.memory import constants
from sparkloom.launch.memory.constants import Figure, Requirements, element
from sparkloom.launch.memory.fit import Fit, Ledger, available, requests, weigh
from sparkloom.launch.view import ModelView

SLOTS = 4  # without `parallel`, since the end of 2025


def pool(view: ModelView) -> int:
    return view.whole("ctx_size") or view.model.context


def requirements(view: ModelView) -> Requirements:
    told = max(0, view.whole("parallel") or 0)
    shared = view.on("kv_unified") or not told
    return Requirements(
        fraction=1.0,
        fraction_flag="",
        fraction_given=False,
        context=pool(view) if shared else max(1, pool(view) // told),
        context_flag="ctx_size",
        kv_element=element(view.text("cache_type_k")),
        state_element=4.0,
        running=told or SLOTS,
        running_flag="parallel",
        ahead=view.whole("ubatch_size") or 512,
        chunk=view.whole("ubatch_size") or 512,
        whole_window=view.on("swa_full"),
    )


def fit(view: ModelView, needs: Requirements) -> Fit:
    ledger = Ledger()
    free = available(view, ledger, constants.BARE_HOST_GIB)
    loaded = weigh(view, ledger, Figure(0.0, "the file's size is what is loaded"))
    rest = free - loaded - constants.HOST_FLOOR_GIB.number
    mixed = "a GGUF mixes formats per tensor: weights are the file's size in equal parts, not a sum of tensors"
    ledger.notes.append(mixed)
    running, tokens = needs.running or 1, pool(view)
    if needs.context == tokens and running > 1:
        ledger.notes.append(
            f"{running} requests share {tokens:,} tokens; those that need more together are ended in the middle of "
            f'their answers ("Context size has been exceeded"): np: {running} gives each {tokens // running:,}'
        )
    return requests(view, needs, ledger, rest, tokens)
