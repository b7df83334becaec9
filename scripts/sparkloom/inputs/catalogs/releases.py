"""Which releases have a catalog, and which of them speaks for a release that has none of its own."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from packaging.version import Version

FOLDER = Path(__file__).resolve().parent / "data"

# What leads a tag such as 0.5.13-dev-nemotronh-mtp-sm121 or v0.5.12.post1-sm121; the rest names somebody's build.
_LEADING = re.compile(
    r"v?(\d+(?:\.\d+)+)(?:[-._]?(a|b|rc)(\d+))?(?:[-._]?post(\d+))?(?:[-._]?(dev)(\d*))?(?![a-z0-9.])", re.IGNORECASE
)
_BUILD = re.compile(r"b(\d+)$")  # llama.cpp counts its builds


@dataclass(frozen=True, slots=True)
class Resolved:
    """The catalog that answers for `asked`; `note` says so where it is another release's. `next`: the one after it."""

    asked: str
    version: str
    note: str = ""
    next: str = ""


@lru_cache
def engines() -> list[str]:
    """Those of which any release has a catalog."""
    return sorted({path.stem.split("-", 1)[0] for path in FOLDER.glob("*.json")})


@lru_cache
def releases(engine: str) -> tuple[str, ...]:
    """Releases with a catalog, oldest first."""
    names = [path.stem.removeprefix(f"{engine}-") for path in FOLDER.glob(f"{engine}-*.json")]
    if not names:
        raise LookupError(f"engine '{engine}' has no catalog; known engines: {', '.join(engines())}")
    return tuple(sorted(names, key=_order))


def known(engine: str) -> tuple[str, ...]:
    """As `releases`; none where an engine has no catalog."""
    return releases(engine) if engine in engines() else ()


@lru_cache
def nearest(engine: str, version: str) -> Resolved:
    """The release itself; else, for a dev or rc build, the release it leads to; else the newest one before it."""
    having = releases(engine)
    if version in having:
        return Resolved(version, version)
    wanted = number(version)
    if wanted is None:
        note = f"'{version}' is no release number; judged by the newest catalog, {engine} {having[-1]}"
        return Resolved(version, having[-1], note)
    same = next((name for name in having if _order(name) == wanted), None)
    if same is not None:
        return Resolved(version, same)
    leads_to = str(wanted.base_version)
    if wanted.is_prerelease and leads_to in having:
        return Resolved(version, leads_to, f"{version} is a build and no release; judged by {engine} {leads_to}")
    before = [name for name in having if _order(name) < wanted]
    chosen, later = before[-1] if before else having[0], having[len(before) :]
    note = f"no catalog of {engine} {version}; judged by {engine} {chosen}"
    return Resolved(version, chosen, note, later[0] if before and later else "")


def number(text: str) -> Version | None:
    """The release number that leads a tag, or None where there is none."""
    if build := _BUILD.match(text[:99]):
        return Version(build.group(1))
    match = _LEADING.match(text[:99])
    if match is None:
        return None
    number, stage, stage_number, post, dev, dev_number = match.groups()
    spelled = number + (f"{stage}{stage_number}" if stage else "") + (f".post{post}" if post else "")
    return Version(spelled + (f".dev{dev_number or 0}" if dev else ""))


def _order(name: str) -> Version:
    parsed = number(name)
    if parsed is None:
        raise ValueError(f"{FOLDER}: the catalog of '{name}' has no release number in its name")
    return parsed
