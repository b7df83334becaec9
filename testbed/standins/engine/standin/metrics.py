"""Counters of one server, under each engine's own metric names."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from standin.config import Config

BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)


@dataclass
class Histogram:
    counts: list[int] = field(default_factory=lambda: [0] * len(BUCKETS))
    total: float = 0.0
    number: int = 0

    def add(self, value: float) -> None:
        self.total += value
        self.number += 1
        for place, limit in enumerate(BUCKETS):
            self.counts[place] += value <= limit

    def lines(self, name: str, labels: str) -> list[str]:
        rows = [
            f'{name}_bucket{{le="{limit}",{labels}}} {count}' for limit, count in zip(BUCKETS, self.counts, strict=True)
        ]
        rows.append(f'{name}_bucket{{le="+Inf",{labels}}} {self.number}')
        rows += [f"{name}_sum{{{labels}}} {self.total:.6f}", f"{name}_count{{{labels}}} {self.number}"]
        return [f"# TYPE {name} histogram", *rows]


@dataclass
class Meter:
    running: int = 0
    queued: int = 0
    prompt: int = 0
    generated: int = 0
    stepped: int = 0  # how many ran at the last step, which is when vLLM writes its gauges
    requests: int = 0
    aborted: int = 0
    ends: dict[str, int] = field(default_factory=dict)
    first: Histogram = field(default_factory=Histogram)
    between: Histogram = field(default_factory=Histogram)
    whole: Histogram = field(default_factory=Histogram)
    window: list[tuple[float, int]] = field(default_factory=list)

    def step(self, tokens: int, first: float, since_last: float) -> None:
        self.generated += tokens
        self.stepped = self.running
        now = time.monotonic()
        self.window = [(at, count) for at, count in self.window if at > now - 5] + [(now, tokens)]
        if first:
            self.first.add(first)
        elif tokens:
            self.between.add(since_last / tokens)

    def finished(self, why: str, tokens: int, seconds: float) -> None:
        self.requests += 1
        self.stepped = self.running - 1
        self.ends[why] = self.ends.get(why, 0) + 1
        self.whole.add(seconds)

    @property
    def throughput(self) -> float:
        """Tokens a second over the last five seconds, as the engines' own log lines have it."""
        recent = [(at, count) for at, count in self.window if at > time.monotonic() - 5]
        return sum(count for _, count in recent) / 5 if recent else 0.0


def page(config: Config, meter: Meter) -> str:
    usage = min(1.0, (meter.stepped if config.engine == "vllm" else meter.running) / (config.max_running or 32))
    rows = {"sglang": _sglang, "vllm": _vllm, "llamacpp": _llamacpp}[config.engine](config, meter, usage)
    return "\n".join(rows) + "\n"


def _plain(kind: str, prefix: str, labels: str, values: Mapping[str, float]) -> list[str]:
    marks = f"{{{labels}}}" if labels else ""
    return [
        line
        for name, value in values.items()
        for line in (f"# TYPE {prefix}:{name} {kind}", f"{prefix}:{name}{marks} {value}")
    ]


def _sglang(config: Config, meter: Meter, usage: float) -> list[str]:
    labels = f'engine_type="unified",model_name="{config.served_name}",moe_ep_rank="0",pp_rank="0",tp_rank="0"'
    model = f'model_name="{config.served_name}"'
    gauges = {
        "num_running_reqs": meter.running,
        "num_queue_reqs": meter.queued,
        "token_usage": usage,
        "gen_throughput": meter.throughput,
        "cache_hit_rate": 0.0,
        "spec_accept_length": 2.5 if config.speculation and meter.running else 0.0,  # 0 without speculation, too
    }
    counters = {
        "prompt_tokens_total": meter.prompt,
        "generation_tokens_total": meter.generated,
        "num_requests_total": meter.requests,
        "num_aborted_requests_total": meter.aborted,
    }
    return [
        *_plain("gauge", "sglang", labels, gauges),
        *_plain("counter", "sglang", model, counters),
        *meter.first.lines("sglang:time_to_first_token_seconds", model),
        *meter.between.lines("sglang:inter_token_latency_seconds", model),
        *meter.whole.lines("sglang:e2e_request_latency_seconds", model),
    ]


def _vllm(config: Config, meter: Meter, usage: float) -> list[str]:
    labels = f'engine="0",model_name="{config.served_name}"'
    gauges = {
        "num_requests_running": meter.running,
        "num_requests_waiting": meter.queued,
        "kv_cache_usage_perc": usage,
    }
    counters = {"prompt_tokens_total": meter.prompt, "generation_tokens_total": meter.generated}
    ends = [f'vllm:request_success_total{{finished_reason="{why}",{labels}}} {n}' for why, n in meter.ends.items()]
    return [
        *_plain("gauge", "vllm", labels, gauges),
        *_plain("counter", "vllm", labels, counters),
        "# TYPE vllm:request_success_total counter",
        *ends,
        *meter.first.lines("vllm:time_to_first_token_seconds", labels),
        *meter.between.lines("vllm:inter_token_latency_seconds", labels),
        *meter.whole.lines("vllm:e2e_request_latency_seconds", labels),
    ]


def _llamacpp(config: Config, meter: Meter, usage: float) -> list[str]:
    counters = {
        "prompt_tokens_total": meter.prompt,
        "tokens_predicted_total": meter.generated,
        "n_decode_total": meter.generated,
    }
    gauges = {
        "predicted_tokens_seconds": meter.throughput,
        "requests_processing": meter.running,
        "requests_deferred": meter.queued,
    }
    return [*_plain("counter", "llamacpp", "", counters), *_plain("gauge", "llamacpp", "", gauges)]
