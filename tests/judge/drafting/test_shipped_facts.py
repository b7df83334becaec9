"""What a shipped profile says of a model whose own files are known: `profile check` finds nothing wrong in it.

Of another packing, or of a release with the same `config.json`, the shape alone is compared: who packs a model chooses
precision and size, and may leave its draft layers out.
"""

from __future__ import annotations

from functools import cache

import pytest

from sparkloom.base.finding import Finding
from sparkloom.inputs import known_models
from sparkloom.inputs import profile as profiles
from sparkloom.inputs.checkpoint import as_model, reading
from sparkloom.inputs.checkpoint.as_model import Drafted
from sparkloom.judge.drafting import comparing
from tests.public_models import NAMES, facts, folder

OWN = {facts(name)["model"].lower(): name for name in NAMES}
BASES = {known_models.split(facts(name)["model"])[0]: name for name in reversed(NAMES)}
# By another name the same config.json, but for precision: as the profiles' own sources say.
ALSO = {
    "minimax-m3-v0": "nvidia--MiniMax-M3-NVFP4",
    "minimax-m2.5": "nvidia--MiniMax-M2.7-NVFP4",
    "gemma-4-26b-a4b-it": "google--gemma-4-26B-A4B",
    "gemma-4-31b-it": "nvidia--Gemma-4-31B-IT-NVFP4",
    "nemotron-3-ultra-550b-a55b-gguf": "nvidia--NVIDIA-Nemotron-3-Ultra-550B-A55B-NVFP4",
}
SHAPE = {"architecture", "active_b", "context", "multimodal", "hidden", "vocab", "layers", "attention", "experts",
         "mamba", "linear", "dense_inter", "tied_embeddings"}  # fmt: skip
PACKED = {"precision", "checkpoint"}
UNKNOWN = {"GLM-4.7", "Nemotron-Cascade", "Nano-Omni", "Qwen3.8-27B"}  # models whose files nobody here has read


def known(model: str) -> tuple[str, bool]:
    """The public model that a profile's is, and whether it is this very checkpoint."""
    if own := OWN.get(model.lower()):
        return own, True
    base = known_models.split(model)[0]
    return BASES.get(base) or ALSO.get(base, ""), False


@cache
def drafted(name: str) -> Drafted:
    return as_model.of(reading.read(str(folder(name))))


def wrong(profile: str) -> list[Finding]:
    """What is said otherwise; what a profile leaves unsaid is no claim."""
    loaded = profiles.load(profile)
    name, same = known(loaded.profile.model.id)
    found = [f for f in comparing.findings(loaded, drafted(name)) if " is not given; " not in f.message]
    parts = {f.message: f.message.split()[0].split(".")[1] for f in found}
    if not same:
        return [f for f in found if parts[f.message] in SHAPE]
    left = PACKED if "left_out" in facts(name) else set()
    return [f for f in found if parts[f.message] not in left]


KNOWN = [name for name in profiles.names() if known(profiles.load(name).profile.model.id)[0]]


@pytest.mark.parametrize("name", KNOWN)
def test_a_shipped_profile_says_what_its_model_s_files_say(name: str) -> None:
    assert [(f.where, f.message) for f in wrong(name)] == []


def test_most_profiles_are_of_models_whose_files_are_known() -> None:
    others = {profiles.load(name).profile.model.id for name in profiles.names() if name not in KNOWN}
    assert all(any(part in model for part in UNKNOWN) for model in others), others
    assert len(KNOWN) >= 40
