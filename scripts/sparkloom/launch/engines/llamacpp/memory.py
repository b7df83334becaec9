"""llama.cpp's memory: layers are dealt over the nodes, the cache is allocated whole for the context asked for.

None of this was weighed on GB10 by us: the sums are the engine's own rules, the host's share is assumed.
"""

from __future__ import annotations

from sparkloom.launch.memory import constants
from sparkloom.launch.memory.figure import Figure
from sparkloom.launch.memory.fit import Fit, Ledger, available, requests, weigh
from sparkloom.launch.memory.requirements import Requirements, element
from sparkloom.launch.view import LaunchView


def requirements(view: LaunchView) -> Requirements:
    return Requirements(
        fraction=1.0,
        fraction_flag="",
        fraction_given=False,
        context=view.whole("ctx_size") or view.model.context,
        context_flag="ctx_size",
        kv_element=element(view.text("cache_type_k")),
        state_element=4.0,
        running=view.whole("parallel") or 1,
        running_flag="parallel",
        graph_batch=None,
        ahead=view.whole("ubatch_size") or 512,
        whole_window=view.on("swa_full"),
    )


def fit(view: LaunchView, needs: Requirements) -> Fit:
    ledger = Ledger()
    free = available(view, ledger, constants.BARE_HOST_GIB)
    loaded = weigh(view, ledger, Figure(0.0, "the file's size is what is loaded"))
    rest = free - loaded - float(constants.HOST_FLOOR_GIB.value or 0)
    ledger.notes.append(
        "a GGUF mixes formats per tensor: weights are the file's size in equal parts, not a sum of tensors"
    )
    return requests(view, needs, ledger, rest)
