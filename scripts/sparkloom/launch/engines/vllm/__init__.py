"""vLLM: all that it is."""
