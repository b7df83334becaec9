"""Which release a command line speaks: as its file or its image says, else the newest that takes its words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from sparkloom.inputs.catalogs import argv, releases
from sparkloom.inputs.catalogs.catalog import Catalog
from sparkloom.launch import engines

WRITTEN, GIVEN = "the file says it", "--engine-version says it"
BY_DATE = 20  # NVIDIA's images count years and months: 26.03 is no release of an engine
_BUILD = re.compile(r"(?<![a-z0-9])b\d{4,}(?![a-z0-9])")  # llama.cpp counts its builds
_MOVING = re.compile(r"(nightly|latest|main|dev)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Spoken:
    release: str
    how: str
    sure: bool
    catalog: Catalog | None


def of(engine: str, words: Sequence[str], image: str, said: str = "", by: str = WRITTEN, beside: str = "") -> Spoken:
    """`beside`: the release that the source installs, which the image's tag goes before."""
    known = releases.known(engine)
    tagged = "" if said else _tagged(image, known)
    if named := said or tagged or beside:
        how = f"the tag of {image.partition('@')[0]}" if tagged else by
        return Spoken(named, how, True, engines.catalog(engine, named) if known else None)
    if not known:
        return Spoken("", f"{engine} has no catalog here", False, None)
    scored = [(_against(engine, release, words), -index, release) for index, release in enumerate(reversed(known))]
    least = min(count for count, _, _ in scored)
    release = max((index, release) for count, index, release in scored if count == least)[1]
    takes = f"takes {f'all but {least} of its flags' if least else 'every flag'} as written"
    image_said = f"the tag of {image} names none" if image else "no image and no release is named"
    how = f"{image_said}; {release} is the newest catalog that {takes}"
    return Spoken(release, how, False, engines.catalog(engine, release))


def published(image: str) -> bool:
    """An image of the engine's own project, or NVIDIA's."""
    from sparkloom.inputs.importers import vocabulary  # a long file, and few launches ask

    return image.removeprefix("docker.io/").startswith(tuple(vocabulary.OFFICIAL))


def official(image: str) -> bool:
    """One of a release: what it takes, its catalog says."""
    return published(image) and bool(_tagged(image, ()))


def _tagged(image: str, known: Sequence[str]) -> str:
    """The release in an image's tag; none where the tag moves, counts by date, or counts something of its own."""
    tag = image.partition("@")[0].rpartition("/")[2].partition(":")[2]
    if build := _BUILD.search(tag):
        return build[0]
    number = releases.number(tag)
    if number is None or _MOVING.search(tag) or number.major >= BY_DATE:
        return ""
    had = [found for release in known if (found := releases.number(release)) is not None]
    strange = had and (number < had[0] or number.major > had[-1].major)  # somebody counts versions of his own
    if strange and not published(image):
        return ""
    match = re.match(r"v?(\d+(?:\.\d+)+(?:\.?(?:post|rc)\d+)?)", tag)
    return match[1] if match else tag.split("-")[0]


def _against(engine: str, release: str, words: Sequence[str]) -> int:
    """Words that speak against a release: it does not take them, or has another name for them by now."""
    catalog = engines.catalog(engine, release)
    count = 0
    for part in argv.parts(catalog, words):
        if isinstance(part, argv.Stray):
            count += not part.seat
        else:
            against = [p for p in argv.refused(part, catalog) if p.rejected or p.kind == "unregistered"]
            count += bool(against or part.flag.replacement)
    return count
