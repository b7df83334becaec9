"""What the stand-in needs to know of a launch, whatever the engine calls it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

UNSHARED = {"node_rank", "host", "port", "headless"}  # what may differ between the ranks of one group


@dataclass(frozen=True)
class Config:
    engine: str
    release: str
    model: str
    served_name: str
    host: str
    port: int
    nnodes: int = 1
    rank: int = 0
    tp: int = 1
    pp: int = 1
    ep: int = 1
    meet: str | None = None  # host:port where the ranks meet
    context: int | None = None
    max_running: int | None = None
    reasoning: bool = False
    tools: bool = False
    api_key: str | None = None
    values: dict[str, Any] = field(default_factory=dict)

    @property
    def group_hash(self) -> str:
        shared = {key: value for key, value in self.values.items() if key not in UNSHARED}
        return hashlib.sha256(json.dumps(shared, sort_keys=True, default=str).encode()).hexdigest()[:16]


def from_sglang(release: str, values: dict[str, Any]) -> Config:
    return Config(
        engine="sglang",
        release=release,
        model=values["model_path"],
        served_name=values.get("served_model_name") or values["model_path"],
        host=values["host"],
        port=int(values["port"]),
        nnodes=values["nnodes"],
        rank=values["node_rank"],
        tp=_first(values, "tp_size", "tensor_parallel_size"),
        pp=_first(values, "pp_size", "pipeline_parallel_size"),
        ep=_first(values, "ep_size", "expert_parallel_size"),
        meet=values.get("dist_init_addr"),
        context=values.get("context_length"),
        max_running=values.get("max_running_requests") or _mamba_limit(values),
        reasoning=bool(values.get("reasoning_parser")),
        tools=bool(values.get("tool_call_parser")),
        api_key=values.get("api_key"),
        values=values,
    )


def _first(values: dict[str, Any], *names: str) -> int:
    """A value whose name in the parser changed between releases."""
    return next((int(values[name]) for name in names if values.get(name) is not None), 1)


def _mamba_limit(values: dict[str, Any]) -> int | None:
    """Three state slots a request, five with speculation: what the servers' logs show."""
    slots = values.get("max_mamba_cache_size")
    return slots // (5 if values.get("speculative_algorithm") else 3) if slots else None


def from_vllm(release: str, values: dict[str, Any]) -> Config:
    model = values.get("model_tag") or values["model"]
    names = values.get("served_model_name")
    return Config(
        engine="vllm",
        release=release,
        model=model,
        served_name=names[0] if isinstance(names, list) and names else names or model,
        host=values.get("host") or "0.0.0.0",
        port=int(values["port"]),
        nnodes=values.get("nnodes") or 1,
        rank=values.get("node_rank") or 0,
        tp=values["tensor_parallel_size"],
        pp=values["pipeline_parallel_size"],
        ep=values["tensor_parallel_size"] if values.get("enable_expert_parallel") else 1,
        meet=f"{values['master_addr']}:{values['master_port']}" if (values.get("nnodes") or 1) > 1 else None,
        context=values.get("max_model_len"),
        max_running=values.get("max_num_seqs"),
        reasoning=bool(values.get("reasoning_parser")),
        tools=bool(values.get("tool_call_parser")),
        api_key=next(iter(values.get("api_key") or []), None),
        values=values,
    )
