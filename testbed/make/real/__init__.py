"""Images with the real engines on CPU: SGLang itself, its torch without a GPU, tiny models with random weights."""
