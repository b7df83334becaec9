"""A model as a launch holds it: some flags make stored weights thinner while they are loaded."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from sparkloom.inputs.profile import Model, Precision
from sparkloom.launch.view import ModelView

LINEAR = ("experts", "shared", "dense", "attention", "mamba", "linear")  # what `quantization: fp8` takes
# Words of the fork flag `mxfp4_layers`, and what of a model each of them is.
MXFP4 = {"moe": "experts", "qkv": "attention", "o": "attention", "lm_head": "embedding"}


def held(view: ModelView) -> Model:
    """The model with the precisions that this launch computes with; as stored where nothing says otherwise."""
    quantization, layers = view.text("quantization"), view.text("mxfp4_layers")
    return _held(_Key(view.model, quantization, layers)) if quantization == "fp8" or layers else view.model


@dataclass(frozen=True)
class _Key:
    """Models hold mappings and cannot be hashed; one object is one model for as long as it lives."""

    model: Model
    quantization: str
    layers: str

    def __hash__(self) -> int:
        return hash((id(self.model), self.quantization, self.layers))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Key):
            return NotImplemented
        return self.model is other.model and self.said == other.said

    @property
    def said(self) -> tuple[str, str]:
        return self.quantization, self.layers


@lru_cache(maxsize=128)
def _held(key: _Key) -> Model:
    stored = key.model.precision.model_dump()
    thinner: dict[str, Precision] = {}
    if key.quantization == "fp8" and key.model.checkpoint.packing == "bf16":
        thinner = {part: "fp8" for part in LINEAR if stored[part] in ("bf16", "fp16")}
    parts = {MXFP4[word] for word in key.layers.replace(" ", "").split(",") if word in MXFP4}
    thinner |= {part: "mxfp4" for part in parts if stored[part] in ("bf16", "fp16")}
    if not thinner:
        return key.model
    return key.model.model_copy(update={"precision": key.model.precision.model_copy(update=thinner)})
