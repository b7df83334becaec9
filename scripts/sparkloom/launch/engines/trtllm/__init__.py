"""TensorRT-LLM: all that it is."""
