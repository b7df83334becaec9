"""SGLang's numbers. The fraction: read in 0.5.12 to 0.5.23; at 1 nothing is left for graphs and activations."""

from sparkloom.launch.ranges import COUNT, MAYBE, SHARE, above, or_else

RANGES = {
    "mem_fraction_static": above(0, below=1),
    "context_length": COUNT,
    "max_running_requests": COUNT,
    "max_queued_requests": COUNT,
    "max_total_tokens": COUNT,
    "max_prefill_tokens": COUNT,
    "max_mamba_cache_size": COUNT,
    "mamba_full_memory_ratio": above(0),
    "swa_full_tokens_ratio": SHARE,
    "chunked_prefill_size": or_else(COUNT, -1),  # -1 turns chunked prefill off
    "cuda_graph_max_bs": COUNT,
    "cuda_graph_max_bs_decode": COUNT,
    "cuda_graph_max_bs_prefill": COUNT,
    "cuda_graph_bs": COUNT,
    "page_size": COUNT,
    "stream_interval": COUNT,
    "schedule_conservativeness": above(0),
    "speculative_num_steps": COUNT,
    "speculative_eagle_topk": COUNT,
    "speculative_num_draft_tokens": COUNT,
    "watchdog_timeout": above(0),
    "dist_timeout": COUNT,
    "cpu_offload_gb": MAYBE,
}
