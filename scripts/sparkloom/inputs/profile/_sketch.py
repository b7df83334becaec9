"""A profile whose model has a name and no facts yet: enough to spell its launch, not to say whether it fits."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from sparkloom.base import document
from sparkloom.inputs.profile._facts import Model
from sparkloom.inputs.profile._loading import LoadedProfile
from sparkloom.inputs.profile._model import Engine, Evidence, LaunchSection, Profile
from sparkloom.inputs.profile._types import HubId, Strict


class Named(Strict):
    id: HubId
    revision: str | None = None
    file: str | None = None
    draft: dict[str, str] | None = None


class Sketch(Strict):
    summary: str
    model: Named
    engine: Engine
    launch: LaunchSection
    env: dict[str, str] = Field(default_factory=dict)
    evidence: list[Evidence] = Field(default_factory=list)


def of_text(text: str, name: str, shown: str) -> LoadedProfile:
    """What a sketch does hold is read as strictly as in any profile; its `model` has what is there, and no more."""
    parsed = document.parse(text, shown)
    sketch = document.validate(Sketch, parsed)
    told: dict[str, Any] = {"runs_unpinned_code_of": [], **sketch.model.model_dump(exclude={"draft"})}
    profile = Profile.model_construct(
        extends=None, summary=sketch.summary, model=Model.model_construct(**told), engine=sketch.engine,
        launch=sketch.launch, env=sketch.env, evidence=sketch.evidence,
    )  # fmt: skip
    return LoadedProfile(name, profile, parsed)
