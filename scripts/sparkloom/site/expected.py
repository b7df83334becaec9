"""What of `up` takes longer than a minute: by what this site measured, else what others measured, else by a guess.

What came of it here stands in build/<site>/times.json.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from pydantic import TypeAdapter

from sparkloom.base import files, repository
from sparkloom.base.assumption import SIGN
from sparkloom.inputs import profile as profiles
from sparkloom.inputs import serving
from sparkloom.inputs.cluster import Cluster
from sparkloom.inputs.profile import LoadedProfile
from sparkloom.launch import patience, resolve
from sparkloom.launch.downloads import amount
from sparkloom.onnode.waker.refusal import span

LONG = 60.0
RATE = 50e6  # bytes a second that a hub or a registry gives: a guess, until something came from one
IMAGE = 10e9  # bytes of an engine's image with CUDA: a guess, its registry tells it
Known = dict[str, float]  # bytes a second of "weights MODEL" and "image NAME", seconds of "start PROFILE"


class Step(NamedTuple):
    what: str
    seconds: float  # at most
    text: str


def steps(site: Path, cluster: Cluster, profile: str | None) -> list[Step]:
    """Of the profile that is named, else of all that the inventory serves; nothing that is known to be there."""
    known = _known(cluster.name)
    names = [profile] if profile else [entry.profile for entry in serving.load(site, cluster).entries]
    found = dict.fromkeys(step for name in names for step in _of(profiles.load(name), known))
    return [step for step in found if step.seconds > LONG]


def keep(site: str, measured: Known) -> None:
    """What a run told, beside what is known."""
    if measured:
        files.write(_file(site), json.dumps(_known(site) | measured, indent=1) + "\n")


def _known(site: str) -> Known:
    """Nothing before the first run, and of a file that is none of ours."""
    try:
        return TypeAdapter(Known).validate_json(_file(site).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def _file(site: str) -> Path:
    return repository.kept(site) / "times.json"


def _of(loaded: LoadedProfile, known: Known) -> Iterator[Step]:
    if took := known.get(f"start {loaded.name}"):  # its weights and its image are there since
        yield Step("start", took, f"{span(took)}, as the last one here")
        return
    model, engine = loaded.profile.model, loaded.profile.engine
    if f"weights {model.id}" not in known:
        size = _gigabytes(loaded) + (model.draft.size_gb or 0.0 if model.draft else 0.0)
        yield _transfer("weights", size * 1e9, known, "" if model.checkpoint.size_gb else SIGN)
    if f"image {resolve.image_reference(loaded)}" not in known and not engine.recipe:
        yield _transfer("image", IMAGE, known, SIGN)
    load, told = _load(loaded)
    compiles = f"then its kernels compile, once: up to {SIGN}{span(patience.FIRST_COMPILE)}"
    yield Step("first start", load + patience.FIRST_COMPILE, f"{told}, {compiles}")


def _transfer(what: str, size: float, known: Known, sign: str = "") -> Step:
    """At the least rate that was measured here. `sign`: of the size."""
    measured = min((rate for name, rate in known.items() if name.startswith(what)), default=0.0)
    rate, guess = measured or RATE, "" if measured else SIGN
    told = f"{sign}{amount(size)} at {guess}{amount(rate)}/s: {sign or guess}{span(size / rate)}"
    return Step(what, size / rate, f"{told}, at the rate measured here" if measured else told)


def _load(loaded: LoadedProfile) -> tuple[float, str]:
    """Seconds, as measured of this model, else of the one whose ranks load the most similar share."""
    if seconds := loaded.profile.model.measured.load_seconds:
        return seconds, f"{span(seconds)} to load, as measured"
    share = _share(loaded)
    measured = [one for one in map(profiles.load, profiles.names()) if one.profile.model.measured.load_seconds]
    nearest = min(measured, key=lambda one: abs(_share(one) - share))
    seconds = (nearest.profile.model.measured.load_seconds or 0.0) * share / _share(nearest)
    return seconds, f"{SIGN}{span(seconds)} to load, by {nearest.profile.model.id}"


def _share(loaded: LoadedProfile) -> float:
    return _gigabytes(loaded) / loaded.profile.launch.parallel.nodes


def _gigabytes(loaded: LoadedProfile) -> float:
    """Of the checkpoint; where nobody wrote that down a byte for each parameter, which is a guess."""
    return loaded.profile.model.checkpoint.size_gb or loaded.profile.model.parameters_b
