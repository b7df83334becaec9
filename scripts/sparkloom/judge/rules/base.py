"""Where a rule holds, what it finds, and where it is known from: what its data and its checks are made of.

A rule never applies everywhere. Its `scope` says for which engine, releases, images, architectures and
quantizations the trap was seen; its check looks at the rest.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Annotated

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version
from pydantic import AfterValidator, BaseModel, ConfigDict

from sparkloom.launch.view import LaunchView

__all__ = ["Hit", "Hits", "LaunchView", "Part", "Releases", "Scope", "Source", "case", "within"]

# A rule's failing and passing case: of the engine and release that most traps are of, unless it says otherwise.
case = partial(LaunchView, engine="sglang", release="0.5.12")


COUNTS = ("nodes", "tp", "pp", "ep")  # of a launch


def _range(text: str) -> str:
    try:
        SpecifierSet(text)
    except InvalidSpecifier:
        raise ValueError(f"'{text}' is no range of releases, as '>=0.5.12,<0.5.16'") from None
    return text


Releases = Annotated[str, AfterValidator(_range)]


class Part(BaseModel):
    """Of a rule's file."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class Scope(Part):
    """Where a trap was seen. Every part that is given must match."""

    engine: str
    releases: Releases = ""  # PEP 440 specifier, as ">=0.5.12,<0.5.16"
    architecture: str = ""  # regular expression, matched from the start
    packing: str = ""  # regular expression over LaunchView.packing
    image: str = ""  # regular expression, searched
    nodes: Releases = ""  # conditions on counts, written as on releases: ">1" or "==4"
    tp: Releases = ""
    pp: Releases = ""
    ep: Releases = ""
    unless_carries: tuple[str, ...] = ()  # fixes that lift the trap, as "sglang#27998"

    def covers(self, view: LaunchView) -> bool:
        return (
            self.engine in ("*", view.engine)
            and all(within(str(getattr(view, name)), getattr(self, name)) for name in COUNTS)
            and (not self.releases or within(view.release, self.releases))
            and (not self.architecture or re.match(self.architecture, view.architecture) is not None)
            and (not self.packing or re.fullmatch(self.packing, view.packing) is not None)
            and (not self.image or re.search(self.image, view.image) is not None)
            and not view.carries.intersection(self.unless_carries)
        )

    def __str__(self) -> str:
        parts = {name: getattr(self, name) for name in ("releases", "architecture", "packing", "image", *COUNTS)}
        limits = [f"{name} {value}" for name, value in parts.items() if value]
        limits += [f"unless the image carries {' or '.join(self.unless_carries)}"] if self.unless_carries else []
        return ", ".join([self.engine if self.engine != "*" else "every engine", *limits])


@dataclass(frozen=True, slots=True)
class Hit:
    """One match: what was found, and the flag (or env.NAME) to point at."""

    message: str
    flag: str = ""


Hits = Iterable[Hit]  # what a rule's check gives, one by one


@dataclass(frozen=True, slots=True)
class Source:
    """Where a trap is known from."""

    what: str
    date: str = ""
    link: str = ""


@lru_cache(maxsize=4096)
def within(release: str, releases: str) -> bool:
    """Unknown releases (an image that hides its version) are within no range: unknown is no evidence."""
    try:
        return SpecifierSet(releases, prereleases=True).contains(Version(release), prereleases=True)
    except InvalidVersion:
        return False
