"""Profiles: what one may say (`model.py`) and how one is read (`loading.py`)."""

from sparkloom.inputs.profile.loading import OWN, PROFILES, LoadedProfile, apply_override, find, load, names
from sparkloom.inputs.profile.model import (
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
