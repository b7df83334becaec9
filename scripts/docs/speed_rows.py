"""Published speeds of one, two and four Sparks (`speed_rows.yml`), as launches that can be predicted.

Which of them the speed model may be fitted to is said there, by family, so that the others stay a test of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from sparkloom.base import document
from sparkloom.inputs import profile
from sparkloom.inputs.profile import Measured, Model, Parallel
from sparkloom.launch.view import ModelView

FILE = Path(__file__).with_name("speed_rows.yml")


@dataclass(frozen=True, slots=True)
class Level:
    """One measured level: `requests` that were answered at once on average, and their tokens per second."""

    asked: int
    requests: float
    tok_s: float


@dataclass(frozen=True)
class SpeedRow:
    id: str
    view: ModelView
    fitted: bool
    family_fitted: bool  # drafting changes how fast tokens come, not how long a prompt takes
    levels: tuple[Level, ...]
    ttft_s: Mapping[int, float]  # seconds to the first token of one request, by tokens of its prompt
    source: Mapping[str, str]

    @property
    def nodes(self) -> int:
        return self.view.nodes


@cache
def _told() -> Mapping[str, Any]:
    told: Mapping[str, Any] = document.own(FILE.read_text(encoding="utf-8"))
    return told


@cache
def shipped() -> tuple[SpeedRow, ...]:
    return tuple(_row(run, _told()) for run in _told()["runs"])


def fitted_profiles() -> tuple[str, ...]:
    """Shipped profiles whose measured evidence is used for fitting."""
    return tuple(_told()["fitted_profiles"])


def _row(run: Mapping[str, Any], told: Mapping[str, Any]) -> SpeedRow:
    nodes, flags = run["nodes"], dict(run["flags"])
    parallel = Parallel(nodes=nodes, tp=nodes, pp=1, ep=run.get("ep", 1))
    view = ModelView(run["engine"], release=run.get("release", ""), model=_model(run, told["models"]), flags=flags)
    family = run["family"] in told["fitted_families"]
    fitted = family and "speculative_config" not in flags
    source = told["sources"][run["source"]]
    levels, first = tuple(_levels(run)), run.get("ttft_s", {})
    return SpeedRow(run["id"], view.split(parallel), fitted, family, levels, first, source)


def _model(run: Mapping[str, Any], known: Mapping[str, Any]) -> Model:
    """Facts of a shipped profile or of this file, in the precision that ran; what was weighed elsewhere is left out."""
    name = run.get("profile")
    model = profile.load(name).profile.model if name else Model.model_validate(known[run["model"]])
    asked = run.get("precision", {})
    if isinstance(asked, str):
        stored = model.precision.model_dump()
        asked = {part: asked for part, value in stored.items() if value and part != "embedding"}
    precision = model.precision.model_copy(update=asked)
    return model.model_copy(update={"precision": precision, "measured": Measured()})


def _levels(run: Mapping[str, Any]) -> Iterator[Level]:
    """A load of so many clients is not that many requests at once: answers end early, prompts wait for each other."""
    for asked, total in run["tok_s"].items():
        each = run.get("each", {}).get(asked)
        yield Level(asked, min(float(asked), total / each) if each else float(asked), float(total))
