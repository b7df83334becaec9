"""The minutes of a start in seconds: the lines that the engine prints while it loads."""

from __future__ import annotations

import asyncio
import os
import time

from standin.config import Config

SECONDS = float(os.environ.get("STANDIN_LOAD_SECONDS", "2"))
SHARDS = 41


def log(config: Config, text: str) -> None:
    stamp = time.strftime("%Y-%m-%d %H:%M:%S")
    tag = f" TP{config.rank}" if config.tp > 1 else ""
    print(f"[{stamp}{tag}] {text}", flush=True)


async def load(config: Config) -> None:
    """Weights, pools, graphs: in order, with the engine's words."""
    log(config, f"Init torch distributed ends. mem usage=0.21 GB")
    log(config, "Load weight begin. avail mem=115.20 GB")
    for shard in range(1, SHARDS + 1):
        await asyncio.sleep(SECONDS / SHARDS)
        if config.rank == 0 and (shard % 8 == 0 or shard == SHARDS):
            print(
                f"Loading safetensors checkpoint shards: {100 * shard // SHARDS:3d}% Completed | {shard}/{SHARDS}",
                flush=True,
            )
    log(
        config,
        f"Load weight end. elapsed={SECONDS:.2f} s, type={config.values.get('quantization')}, dtype=torch.bfloat16",
    )
    if config.values.get("max_mamba_cache_size"):
        log(config, f"Mamba Cache is allocated. max_mamba_cache_size: {config.values['max_mamba_cache_size']}")
    log(config, "KV Cache is allocated. #tokens: 774547, K size: 1.11 GB, V size: 1.11 GB")
    if not config.values.get("disable_cuda_graph"):
        log(config, "Capture cuda graph begin. This can take up to several minutes.")
        await asyncio.sleep(SECONDS / 4)
        log(config, f"Capture cuda graph end. Time elapsed: {SECONDS / 4:.2f} s.")
    running = config.max_running or 32
    log(config, f"max_total_num_tokens=774547, max_running_requests={running}, context_len={config.context or 262144}")
