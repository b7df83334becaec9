"""Profiles: what a file may say (`_model.py`; of a model: `_facts.py`), how it is read (`_loading.py`).

Other rooms take the names from here.
"""

from sparkloom.inputs.profile._facts import Attention, Draft, Experts, Indexer, Measured, Model, Part
from sparkloom.inputs.profile._loading import OWN, PROFILES, LoadedProfile, find, load, names, of_text
from sparkloom.inputs.profile._model import Evidence, Fork, Form, Numbers, Parallel, Profile, Prompt
from sparkloom.inputs.profile._sketch import of_text as sketch_of_text
from sparkloom.inputs.profile._text import written
from sparkloom.inputs.profile._types import FlagValue, Precision, Strict

__all__ = [
    "OWN", "PROFILES", "Attention", "Draft", "Evidence", "Experts", "FlagValue", "Fork", "Form", "Indexer",
    "LoadedProfile", "Measured", "Model", "Numbers", "Parallel", "Part", "Precision", "Profile", "Prompt", "Strict",
    "find", "load", "names", "of_text", "sketch_of_text", "written",
]  # fmt: skip
