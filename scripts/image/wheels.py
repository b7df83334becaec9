"""Which real wheels a profile's patches meet: its release's own, and of other packages what that release asks for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from scripts.oracle import fetch
from sparkloom.onnode.rank.patching import PatchError

# where a package's top folders lie in its wheel, when not at the top
INSIDE = {"nvidia-cutlass-dsl-libs-base": "nvidia_cutlass_dsl/python_packages"}
ASKED_AS = {"nvidia-cutlass-dsl-libs-base": "nvidia-cutlass-dsl"}  # the package that pins it to its own version

Fetch = Callable[[str, str], Path]


def of(engine: str, release: str, bring: Fetch = fetch.fetch_package) -> Callable[[dict[str, Any], str], Path]:
    """Finds the folder of a patch's package as this release of the engine would have it installed."""

    def find(patch: dict[str, Any], package: str) -> Path:
        name = patch["package"]
        version = release if name == engine else asked(bring(engine, release), patch)
        return bring(name, version) / INSIDE.get(name, "") / package

    return find


def asked(unpacked: Path, patch: dict[str, Any]) -> str:
    """The version of a patch's package that a release pins; of a range the newest one that the patch knows."""
    name = ASKED_AS.get(patch["package"], patch["package"])
    wanted = [r for r in _requirements(unpacked) if canonicalize_name(r.name) == canonicalize_name(name)]
    for requirement in wanted:
        if pins := [one.version for one in requirement.specifier if one.operator == "=="]:
            return pins[0]
        fits = [known for known in patch["releases"] if requirement.specifier.contains(known, prereleases=True)]
        if fits:
            return max(fits, key=Version)
        known = ", ".join(patch["releases"])
        raise PatchError(f"patch {patch['id']}: the engine asks for {requirement}, the patch is written for {known}")
    raise PatchError(f"patch {patch['id']}: {unpacked.name} asks for no {name}; take it out of engine.patches")


def _requirements(unpacked: Path) -> Iterable[Requirement]:
    (metadata,) = unpacked.glob("*.dist-info/METADATA")
    for line in metadata.read_text(encoding="utf-8").splitlines():
        if not line:
            return  # the description follows
        key, _, value = line.partition(": ")
        if key == "Requires-Dist":
            try:
                requirement = Requirement(value)
            except InvalidRequirement:
                continue
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                yield requirement
