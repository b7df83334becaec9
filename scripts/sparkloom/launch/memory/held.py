"""A model as a launch holds it: some flags make stored weights thinner while they are loaded."""

from __future__ import annotations

from functools import lru_cache

from sparkloom.inputs.profile import Model, Precision
from sparkloom.launch.view import ModelView

LINEAR = ("experts", "shared", "dense", "attention", "mamba", "linear")  # what `quantization: fp8` takes
# Words of the fork flag `mxfp4_layers`, and what of a model each of them is.
MXFP4 = {"moe": "experts", "qkv": "attention", "o": "attention", "lm_head": "embedding"}


def held(view: ModelView) -> Model:
    """The model with the precisions that this launch computes with; as stored where nothing says otherwise."""
    quantization, layers = view.text("quantization"), view.text("mxfp4_layers")
    return _held(view.model, quantization, layers) if quantization == "fp8" or layers else view.model


@lru_cache(maxsize=128)
def _held(model: Model, quantization: str, layers: str) -> Model:
    stored = model.precision.model_dump()
    thinner: dict[str, Precision] = {}
    if quantization == "fp8" and model.checkpoint.packing == "bf16":
        thinner = {part: "fp8" for part in LINEAR if stored[part] in ("bf16", "fp16")}
    parts = {MXFP4[word] for word in layers.replace(" ", "").split(",") if word in MXFP4}
    thinner |= {part: "mxfp4" for part in parts if stored[part] in ("bf16", "fp16")}
    if not thinner:
        return model
    return model.model_copy(update={"precision": model.precision.model_copy(update=thinner)})
