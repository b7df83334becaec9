"""Whose launch is nearest to a model that nobody here launched: a shipped profile, and measured runs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from sparkloom.base import amount
from sparkloom.inputs import profile as profiles
from sparkloom.inputs.profile import LoadedProfile, Model
from sparkloom.judge import comparable, profile_status
from sparkloom.judge.comparable import Near
from sparkloom.launch.resolve import Launch


@dataclass(frozen=True, slots=True)
class Like:
    """A shipped profile and how it differs from what is drafted."""

    loaded: LoadedProfile
    differences: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.loaded.name


def profile(model: Model, engine: str | None, nodes: int | None) -> Like | None:
    """The nearest shipped profile of the same architecture; None where there is none."""
    near = [loaded for loaded in _shipped(model.architecture) if engine in (None, loaded.profile.engine.name)]
    if not near:
        return None
    best = min(near, key=lambda loaded: _distance(loaded, model, nodes))
    return Like(best, tuple(_differences(best, model, nodes)))


@cache
def _shipped(architecture: str) -> tuple[LoadedProfile, ...]:
    """Those of an architecture: which files can be of it is seen before they are read, since reading takes longest."""
    texts = {name: profiles.find(name).read_text(encoding="utf-8") for name in profiles.names()}
    having = {name for name, text in texts.items() if architecture in text}
    below = {name for name, text in texts.items() if any(f"extends: {parent}\n" in text for parent in having)}
    read = [profiles.load(name) for name in sorted(having | below)]
    return tuple(loaded for loaded in read if loaded.profile.model.architecture == architecture)


def _distance(loaded: LoadedProfile, model: Model, nodes: int | None) -> tuple[float, str]:
    """Another packing weighs most; then another model; then what was never run; then size; then how many Sparks."""
    own = loaded.profile
    other = 2.0 * (own.model.id != model.id)
    packing = 4.0 * (own.model.checkpoint.packing != model.checkpoint.packing)
    packing += 2.0 * (own.model.precision.experts != model.precision.experts)
    proven = (3 - profile_status.RANK[profile_status.status(own)]) * 0.5
    larger = max(own.model.parameters_b, model.parameters_b) / min(own.model.parameters_b, model.parameters_b)
    apart = 0.5 * abs((nodes or own.launch.parallel.nodes) - own.launch.parallel.nodes)
    return packing + other + proven + min(larger - 1, 3.0) + apart, loaded.name


def _differences(loaded: LoadedProfile, model: Model, nodes: int | None) -> list[str]:
    own, said = loaded.profile, []
    if own.model.id != model.id:
        said.append(f"another model ({own.model.id})")
    if own.model.checkpoint.packing != model.checkpoint.packing:
        said.append(f"packed by {own.model.checkpoint.packing}, not {model.checkpoint.packing}")
    if nodes and own.launch.parallel.nodes != nodes:
        said.append(f"on {amount.of(own.launch.parallel.nodes, 'Spark')}")
    return said


def measured(launch: Launch, limit: int = 3) -> list[Near]:
    """The runs nearest to a launch whose model is of the same architecture."""
    found = comparable.find(launch, 5 * limit)
    return [near for near in found if "architecture" not in (name for name, _, _ in near.differences)][:limit]


def in_words(near: Near) -> str:
    """`model: 25.1 / 77.7 tok/s at 1 / 8 requests, with another tp and image; test log`"""
    row = near.row
    speeds = " / ".join(f"{row[key]:g}" if row.get(key) is not None else "-" for key in ("n1", "n4", "n8"))
    apart = ", ".join(name for name, _, _ in near.differences) or "nothing"
    return f"{row.get('model')}: {speeds} tok/s at 1 / 4 / 8 requests, differs in {apart} ({row.get('id')})"
