"""With what a first launch begins, where nobody's launch of the model is known: the release's defaults, said aloud."""

from __future__ import annotations

from sparkloom.inputs.profile import FlagValue, Model

IMAGE = "lmsysorg/sglang:v{release}"
# By who packed the weights: what the engine calls it. The others it finds out itself.
QUANTIZATION = {"modelopt": {"nvfp4": "modelopt_fp4", "fp8": "modelopt_fp8", "mixed": "modelopt_mixed"}}


def flags(model: Model) -> dict[str, FlagValue]:
    """The fraction is one that leaves the host a fifth; placement and context are found by arithmetic."""
    said: dict[str, FlagValue] = {}
    words = QUANTIZATION.get(model.checkpoint.packing)
    if words:
        main = model.precision.experts or model.precision.dense or model.precision.attention
        mixed = model.checkpoint.mixed or main not in words
        said["quantization"] = words["mixed"] if mixed else words[main]
    return {**said, "context_length": model.context, "mem_fraction_static": 0.8}
