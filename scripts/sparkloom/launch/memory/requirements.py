"""What a launch asks of memory, in one language for all engines."""

from __future__ import annotations

from dataclasses import dataclass


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
