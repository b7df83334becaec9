"""What the stand-in needs to know of a launch, whatever the engine calls it."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# what may differ between the ranks of one group: only rank 0 has the key
UNSHARED = {"node_rank", "host", "port", "headless", "api_key", "config"}


@dataclass(frozen=True)
class Speculation:
    algorithm: str
    steps: int | None = None
    draft_tokens: int | None = None
    topk: int | None = None


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
    dp: int = 1
    meet: str | None = None  # host:port where the ranks meet
    meet_seconds: float | None = None
    context: int | None = None
    max_running: int | None = None
    reasoning: str | None = None
    tools: str | None = None
    api_key: str | None = None
    metrics: bool = True
    serves: bool = True  # answers HTTP at all
    quantization: str | None = None
    moe: str | None = None
    attention: str | None = None
    fp4: str | None = None
    kv: str | None = None
    graphs: bool = True
    piecewise: bool = True
    mem_fraction: float | None = None
    mamba_slots: int | None = None
    speculation: Speculation | None = None
    values: dict[str, Any] = field(default_factory=dict)

    @property
    def group_hash(self) -> str:
        shared = {key: value for key, value in self.values.items() if key not in UNSHARED}
        return hashlib.sha256(json.dumps(shared, sort_keys=True, default=str).encode()).hexdigest()[:16]

    @property
    def image(self) -> str:
        """The reference that this container was made from; empty outside of one."""
        return os.environ.get("STANDIN_IMAGE", "")

    @property
    def carries(self) -> set[str]:
        """Upstream changes that the image has on top of its release."""
        return set(os.environ.get("STANDIN_CARRIES", "").split())


def from_sglang(release: str, values: dict[str, Any]) -> Config:
    algorithm = values.get("speculative_algorithm")
    speculation = Speculation(
        str(algorithm),
        values.get("speculative_num_steps"),
        values.get("speculative_num_draft_tokens"),
        values.get("speculative_eagle_topk"),
    )
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
        dp=_first(values, "dp_size", "data_parallel_size"),
        meet=values.get("dist_init_addr"),
        meet_seconds=values.get("dist_timeout"),
        context=values.get("context_length"),
        max_running=values.get("max_running_requests") or _mamba_limit(values),
        reasoning=values.get("reasoning_parser"),
        tools=values.get("tool_call_parser"),
        api_key=values.get("api_key"),
        metrics=bool(values.get("enable_metrics")),
        quantization=values.get("quantization"),
        moe=values.get("moe_runner_backend"),
        attention=values.get("attention_backend"),
        fp4=values.get("fp4_gemm_runner_backend") or values.get("fp4_gemm_backend"),
        kv=values.get("kv_cache_dtype"),
        graphs=not values.get("disable_cuda_graph") and values.get("cuda_graph_backend_decode") != "disabled",
        piecewise=not values.get("disable_piecewise_cuda_graph")
        and values.get("cuda_graph_backend_prefill") != "disabled",
        mem_fraction=values.get("mem_fraction_static"),
        mamba_slots=values.get("max_mamba_cache_size"),
        speculation=speculation if algorithm else None,
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
    nnodes = values.get("nnodes") or 1
    graphs = not values.get("enforce_eager")
    return Config(
        engine="vllm",
        release=release,
        model=model,
        served_name=names[0] if isinstance(names, list) and names else names or model,
        host=values.get("host") or "0.0.0.0",
        port=int(values["port"]),
        nnodes=nnodes,
        rank=values.get("node_rank") or 0,
        tp=values["tensor_parallel_size"],
        pp=values["pipeline_parallel_size"],
        ep=values["tensor_parallel_size"] if values.get("enable_expert_parallel") else 1,
        meet=f"{values['master_addr']}:{values['master_port']}" if nnodes > 1 else None,
        context=values.get("max_model_len"),
        max_running=values.get("max_num_seqs"),
        reasoning=values.get("reasoning_parser"),
        tools=values.get("tool_call_parser") if values.get("enable_auto_tool_choice") else None,
        api_key=next(iter(values.get("api_key") or []), None),
        serves=not values.get("headless"),
        quantization=values.get("quantization"),
        attention=values.get("attention_backend"),
        kv=values.get("kv_cache_dtype"),
        graphs=graphs,
        piecewise=graphs,
        mem_fraction=values.get("gpu_memory_utilization"),
        values=values,
    )


def from_trtllm(release: str, values: dict[str, Any]) -> Config:
    return Config(
        engine="trtllm",
        release=release,
        model=values["model"],
        served_name=values["model"],
        host=values.get("host") or "localhost",
        port=int(values.get("port") or 8000),
        tp=int(values.get("tensor_parallel_size") or 1),
        pp=int(values.get("pipeline_parallel_size") or 1),
        ep=int(values.get("moe_expert_parallel_size") or 1),
        context=values.get("max_seq_len"),
        max_running=values.get("max_batch_size"),
        reasoning=values.get("reasoning_parser"),
        tools=values.get("tool_parser"),
        values=values,
    )


def _first_line(file: str | None) -> str | None:
    return Path(file).read_text().split("\n")[0] or None if file else None


def from_llamacpp(release: str, values: dict[str, Any]) -> Config:
    return Config(
        engine="llamacpp",
        release=release,
        model=values.get("model") or "models/7B/ggml-model-f16.gguf",
        served_name=values.get("alias") or values.get("model") or "default",
        host=values.get("host") or "127.0.0.1",
        port=int(values.get("port") or 8080),
        context=values.get("ctx_size"),
        max_running=values.get("parallel") or 4,
        reasoning=None if values.get("reasoning_format") == "none" else "deepseek",
        tools="jinja" if values.get("jinja") else None,
        api_key=values.get("api_key") or _first_line(values.get("api_key_file")),
        metrics=bool(values.get("metrics")),
        values=values,
    )
