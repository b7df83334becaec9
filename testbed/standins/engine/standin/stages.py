"""The minutes of a start in seconds: the lines that each engine prints while it loads."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

from standin.conduct import OUT_OF_MEMORY, Conduct, Died
from standin.config import Config
from standin.facts import Facts

SECONDS = float(os.environ.get("STANDIN_LOAD_SECONDS", "2"))
FREE = 103.9  # GiB free on a GB10 before an engine loads, as the logs show
LARGEST = 117.0  # GiB that fit beside the system
GRAPHS = 2.7


def log(config: Config, text: str) -> None:
    if config.engine == "sglang":
        stamp = time.strftime("%Y-%m-%d %H:%M:%S")
        tag = "".join(f" {kind}{config.rank}" for kind in ("TP", "PP", "EP") if getattr(config, kind.lower()) > 1)
        line = f"[{stamp}{tag}] {text}"
    elif config.engine == "vllm":
        worker = (
            f"(Worker_TP{config.rank} pid={os.getpid()})" if config.nnodes > 1 else f"(EngineCore pid={os.getpid()})"
        )
        line = f"{worker} INFO {time.strftime('%m-%d %H:%M:%S')} {text}"
    elif config.engine == "trtllm":
        line = f"[{time.strftime('%m/%d/%Y-%H:%M:%S')}] [TRT-LLM] [I] {text}"
    else:
        line = text
    print(line, flush=True)


async def load(config: Config, facts: Facts, conduct: Conduct) -> None:
    """Weights, pools, graphs: in order, with the engine's words."""
    if _weights(config, facts) > LARGEST:
        raise Died(OUT_OF_MEMORY)
    _compiled()
    slow = conduct.find("slow")
    seconds = slow.seconds if slow else SECONDS
    await {"sglang": _sglang, "vllm": _vllm, "trtllm": _trtllm, "llamacpp": _llamacpp}[config.engine](
        config, facts, conduct, seconds
    )


def _compiled() -> None:
    """What Triton leaves in the pod's cache at its first start, and finds at the next."""
    kernels = Path(os.environ.get("TRITON_CACHE_DIR", "/nowhere/at-all"))
    if kernels.parent.is_dir():
        kernels.mkdir(exist_ok=True)
        (kernels / "kernel.cubin").touch()


def _weights(config: Config, facts: Facts) -> float:
    """GiB that one rank holds: its share, and what every rank needs of its own."""
    measured = (facts.weights_gib or {}).get(f"tp{config.tp}-ep{config.ep}")
    rpc_servers = len(str(config.values.get("rpc") or "").split(",")) if config.values.get("rpc") else 0
    loaded = (facts.bytes_total or 30e9) - (facts.bytes_beside if config.values.get("ple_offload_backend") else 0)
    return measured or loaded / 2**30 / (config.tp * config.pp * (1 + rpc_servers)) * 0.97 + 4.5


def _tokens(config: Config, facts: Facts) -> int:
    """Room for KV after weights, recurrent state and reserve."""
    reserve = 0.1 * (config.mamba_slots or 0) + GRAPHS
    budget = (config.mem_fraction or 0.85) * FREE - _weights(config, facts) - reserve
    return int(max(0.5, budget) * 2**30 / 2 / _key_bytes(config, facts))


def _key_bytes(config: Config, facts: Facts) -> int:
    """Bytes of K a token on one rank; a KV head is never split."""
    heads = max(1, (facts.kv_heads or 1) // config.tp)
    return max(1, facts.kv_values * heads) * (1 if "fp8" in str(config.kv) else 2)


async def _shards(config: Config, facts: Facts, seconds: float, line: str) -> None:
    count = max(1, round((facts.bytes_total or 60e9) / 8e9))
    for shard in range(1, count + 1):
        await asyncio.sleep(seconds / count)
        if config.rank == 0 and (shard % 8 == 0 or shard == count):
            print(f"{line} {100 * shard // count:3d}% Completed | {shard}/{count}", flush=True)


async def _sglang(config: Config, facts: Facts, conduct: Conduct, seconds: float) -> None:
    weights, tokens = _weights(config, facts), _tokens(config, facts)
    log(config, "Init torch distributed ends. mem usage=0.21 GB")
    log(config, f"Load weight begin. avail mem={FREE:.2f} GB")
    await _shards(config, facts, seconds, "Loading safetensors checkpoint shards:")
    await conduct.reach("load")
    free = FREE - weights
    log(
        config,
        f"Load weight end. elapsed={seconds:.2f} s, type={facts.architecture}, dtype=torch.bfloat16, "
        f"avail mem={free:.2f} GB, mem usage={weights:.2f} GB.",
    )
    await conduct.reach("kv")
    if facts.hybrid:
        slots = config.mamba_slots or 18
        log(
            config,
            f"Mamba Cache is allocated. max_mamba_cache_size: {slots}, conv_state size: 0.06GB, "
            f"ssm_state size: {slots * 0.0956:.2f}GB",
        )
    each = tokens * _key_bytes(config, facts) / 2**30
    log(config, f"KV Cache is allocated. #tokens: {tokens}, K size: {each:.2f} GB, V size: {each:.2f} GB")
    if config.graphs:
        batches = config.values.get("cuda_graph_max_bs") or config.values.get("cuda_graph_max_bs_decode") or 8
        log(
            config,
            "Capture cuda graph begin. This can take up to several minutes. "
            f"avail mem={free - 2 * each:.2f} GB bs=1..{batches}",
        )
        await asyncio.sleep(seconds / 4)
        await conduct.reach("graph")
        log(config, f"Capture cuda graph end. Time elapsed: {seconds / 4:.2f} s. mem usage={GRAPHS} GB.")
    else:
        await conduct.reach("graph")
    log(
        config,
        f"max_total_num_tokens={tokens}, chunked_prefill_size={config.values.get('chunked_prefill_size') or 8192}, "
        f"max_prefill_tokens=16384, max_running_requests={config.max_running or 32}, "
        f"context_len={config.context or facts.context}, available_gpu_mem={free - 2 * each - GRAPHS:.2f} GB",
    )


async def _vllm(config: Config, facts: Facts, conduct: Conduct, seconds: float) -> None:
    log(config, f"[gpu_model_runner.py] Starting to load model {config.model}...")
    await _shards(config, facts, seconds, "Loading safetensors checkpoint shards:")
    await conduct.reach("load")
    log(
        config,
        f"[gpu_model_runner.py] Model loading took {_weights(config, facts):.2f} GiB memory and {seconds:.2f} seconds",
    )
    await conduct.reach("kv")
    tokens = _tokens(config, facts)
    log(config, f"[kv_cache_utils.py] GPU KV cache size: {tokens:,} tokens")
    if config.graphs:
        await asyncio.sleep(seconds / 4)
        await conduct.reach("graph")
        log(config, f"[gpu_model_runner.py] Graph capturing finished in {seconds / 4:.0f} secs, took {GRAPHS} GiB")
    else:
        await conduct.reach("graph")


async def _trtllm(config: Config, facts: Facts, conduct: Conduct, seconds: float) -> None:
    log(config, "Prefetching checkpoint files and loading weights")
    await _shards(config, facts, seconds, "Loading weights:")
    await conduct.reach("load")
    await conduct.reach("kv")
    log(config, f"[MemUsageChange] Allocated paged KV cache, max tokens in paged KV cache {_tokens(config, facts)}")
    await conduct.reach("graph")
    log(config, "Running autotuning and CUDA graph warmup")


async def _llamacpp(config: Config, facts: Facts, conduct: Conduct, seconds: float) -> None:
    log(config, "llama_model_loader: loaded meta data with key-value pairs and tensors")
    await asyncio.sleep(seconds)
    await conduct.reach("load")
    log(config, f"load_tensors: offloaded layers to GPU: {_weights(config, facts):.0f} GiB")
    await conduct.reach("kv")
    log(config, f"llama_context: n_ctx = {config.context or facts.context or 4096}")
    await conduct.reach("graph")
    log(config, "main: model loaded")
