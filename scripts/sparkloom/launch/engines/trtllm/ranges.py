"""TensorRT-LLM's numbers; those of its options file are pydantic fields, judged there after the weights are loaded."""

from sparkloom.launch.ranges import COUNT, SHARE

FRACTION = "extra_llm_api_options.kv_cache_config.free_gpu_memory_fraction"
RANGES = {
    "max_batch_size": COUNT,
    "max_num_tokens": COUNT,
    "max_seq_len": COUNT,
    "max_beam_width": COUNT,
    "kv_cache_free_gpu_memory_fraction": SHARE,
    "free_gpu_memory_fraction": SHARE,
    FRACTION: SHARE,
    "extra_llm_api_options.kv_cache_config.max_tokens": COUNT,
    "extra_llm_api_options.max_batch_size": COUNT,
    "extra_llm_api_options.max_seq_len": COUNT,
    "extra_llm_api_options.max_num_tokens": COUNT,
    "extra_llm_api_options.cuda_graph_config.max_batch_size": COUNT,
    "extra_llm_api_options.speculative_config.num_nextn_predict_layers": COUNT,
}
