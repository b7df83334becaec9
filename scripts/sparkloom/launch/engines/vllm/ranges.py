"""vLLM's numbers, as its configuration classes bound them; its parser does not."""

from sparkloom.launch.ranges import COUNT, MAYBE, SHARE, or_else

RANGES = {
    "gpu_memory_utilization": SHARE,
    "max_model_len": or_else(COUNT, -1),  # -1 and auto: as long as the cache allows
    "max_num_seqs": COUNT,
    "max_num_batched_tokens": COUNT,
    "kv_cache_memory_bytes": COUNT,
    "num_gpu_blocks_override": COUNT,
    "block_size": COUNT,
    "cpu_offload_gb": MAYBE,
    "swap_space": MAYBE,
    "data_parallel_size": COUNT,
    "speculative_config.num_speculative_tokens": COUNT,
    "stream_interval": COUNT,
}
