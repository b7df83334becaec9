"""fit(subject): does it start, with how much cache, for how many requests; each engine by its own rules."""

from __future__ import annotations

from collections.abc import Callable

from sparkloom.judge.capacity import fit_others, fit_sglang
from sparkloom.judge.capacity.fit import Fit
from sparkloom.judge.capacity.requirements import Demand, read
from sparkloom.judge.capacity.view import Subject

ENGINES: dict[str, Callable[[Subject, Demand], Fit]] = {
    "sglang": fit_sglang.fit,
    "vllm": fit_others.vllm,
    "trtllm": fit_others.trtllm,
    "llamacpp": fit_others.llamacpp,
}


def fit(subject: Subject) -> Fit:
    return ENGINES[subject.engine](subject, read(subject))
