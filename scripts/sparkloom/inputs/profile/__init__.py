"""Profiles: what a file may say (`_model.py`), how it is read (`_loading.py`). Other rooms take the names from here."""

from sparkloom.inputs.profile._loading import OWN, PROFILES, LoadedProfile, apply_override, find, load, names
from sparkloom.inputs.profile._model import (
    Checkpoint,
    Engine,
    Evidence,
    Experts,
    FlagValue,
    Measured,
    Model,
    Numbers,
    Parallel,
    Precision,
    Profile,
    Strict,
)

__all__ = [
    "OWN", "PROFILES", "Checkpoint", "Engine", "Evidence", "Experts", "FlagValue", "LoadedProfile", "Measured", "Model",
    "Numbers", "Parallel", "Precision", "Profile", "Strict", "apply_override", "find", "load", "names",
]  # fmt: skip
