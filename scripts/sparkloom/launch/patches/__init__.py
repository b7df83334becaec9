"""Changes that an engine's released files need on a GB10, as data: one file per patch, applied by a rank at its start.

What a patch is for, where it was read, and its places stand in `<id>.toml`; `rank/patching.py` applies them.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from sparkloom.base.errors import InputError, did_you_mean
from sparkloom.inputs.profile import LoadedSketch, Strict
from sparkloom.onnode.rank.patching import digest

FOLDER = Path(__file__).resolve().parent


class Edit(Strict):
    """One place: whole lines that stand in the file exactly once, and what stands there afterwards."""

    file: str
    anchor: Annotated[str, Field(pattern=r"(?s)^.+\n$")]
    replacement: Annotated[str, Field(pattern=r"(?s)^.+\n$")]


class Patch(Strict):
    id: str
    package: str
    releases: list[str]
    status: Literal["unvalidated", "measured"] = Field(description="whether this text ran on a GB10")
    only_where_present: bool = Field(default=False, description="a second copy of files: an image may lack it")
    upstream: str
    source: str
    reason: str
    edits: Annotated[list[Edit], Field(min_length=1)]
    released: dict[str, dict[str, str]] = Field(description="file -> release -> its sha256")


def names() -> list[str]:
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


@cache
def load(name: str) -> Patch:
    return Patch.model_validate(tomllib.loads((FOLDER / f"{name}.toml").read_text()))


def of(loaded: LoadedSketch) -> list[dict[str, Any]]:
    """What a rank of this profile applies, as it is told; a name without data is refused here."""
    wanted = loaded.profile.engine.patches
    unknown = [name for name in wanted if name not in names()]
    if unknown:
        message = f"no patch '{unknown[0]}' in scripts/sparkloom/launch/patches{did_you_mean(unknown[0], names())}"
        raise InputError([loaded.document.problem(("engine", "patches"), message, "unknown-patch")])
    return as_data(wanted)


def as_data(wanted: Sequence[str]) -> list[dict[str, Any]]:
    """As a rank, or the build of an image, is told them."""
    return [_as_data(load(name)) for name in wanted]


def _as_data(patch: Patch) -> dict[str, Any]:
    edits: Sequence[dict[str, str]] = [
        {**edit.model_dump(), "anchor_sha256": digest(edit.anchor)} for edit in patch.edits
    ]
    return {
        "id": patch.id,
        "package": patch.package,
        "releases": patch.releases,
        "only_where_present": patch.only_where_present,
        "edits": edits,
        "released": {file: sorted(known.values()) for file, known in patch.released.items()},
    }
