"""Profiles: what a file may say (`_model.py`; of a model: `_facts.py`), how it is read (`_loading.py`).

Other rooms take the names from here.
"""

from sparkloom.inputs.profile._facts import Attention, Draft, Experts, Indexer, Measured, Model, Named, Part
from sparkloom.inputs.profile._loading import (
    OWN,
    PROFILES,
    LoadedProfile,
    LoadedSketch,
    find,
    load,
    names,
    of_text,
    sketch_of_text,
)
from sparkloom.inputs.profile._model import Evidence, Fork, Form, Numbers, Parallel, Profile, Prompt, Sketch
from sparkloom.inputs.profile._text import flow, written
from sparkloom.inputs.profile._types import UNNAMED, FlagValue, Precision, Strict

__all__ = [
    "OWN", "PROFILES", "UNNAMED", "Attention", "Draft", "Evidence", "Experts", "FlagValue", "Fork", "Form", "Indexer",
    "LoadedProfile", "LoadedSketch", "Measured", "Model", "Named", "Numbers", "Parallel", "Part", "Precision",
    "Profile", "Prompt", "Sketch", "Strict", "find", "flow", "load", "names", "of_text", "sketch_of_text", "written",
]  # fmt: skip
