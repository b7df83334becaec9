"""Profiles: what a file may say (`_model.py`), how it is read (`_loading.py`). Other rooms take the names from here."""

from sparkloom.inputs.profile._loading import OWN, PROFILES, LoadedProfile, find, load, names
from sparkloom.inputs.profile._model import (
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
    "OWN", "PROFILES", "Evidence", "Experts", "FlagValue", "LoadedProfile", "Measured", "Model",
    "Numbers", "Parallel", "Precision", "Profile", "Strict", "find", "load", "names",
]  # fmt: skip
