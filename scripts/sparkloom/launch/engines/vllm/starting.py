"""With what a first launch begins, where nobody's launch of the model is known: the release's defaults, said aloud."""

from __future__ import annotations

from sparkloom.inputs.profile import FlagValue, Model

IMAGE = "vllm/vllm-openai:v{release}"


def flags(model: Model) -> dict[str, FlagValue]:
    """It takes its share of the whole machine, and finds out by itself who packed the weights."""
    return {"max_model_len": model.context, "gpu_memory_utilization": 0.85, "max_num_seqs": 16}
