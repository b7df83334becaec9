"""fit(view): does it start, with how much cache, for how many requests; each engine by its own rules."""

from __future__ import annotations

from collections.abc import Callable

from sparkloom.judge.capacity import fit_others, fit_sglang
from sparkloom.judge.capacity.fit import Fit
from sparkloom.judge.capacity.requirements import Requirements, read
from sparkloom.launch.view import LaunchView

ENGINES: dict[str, Callable[[LaunchView, Requirements], Fit]] = {
    "sglang": fit_sglang.fit,
    "vllm": fit_others.vllm,
    "trtllm": fit_others.trtllm,
    "llamacpp": fit_others.llamacpp,
}


def fit(view: LaunchView) -> Fit:
    return ENGINES[view.engine](view, read(view))
