"""What each image's tag meant when it was first served at a site: a file beside the inventory, one entry per image.

A tag can come to mean another image between two nodes' pulls, or between two evenings. A launch names the digest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from sparkloom.inputs import answers, lock_file
from sparkloom.onnode.images import reference

KEY = "image_lock"
place = lock_file.place


@dataclass(frozen=True, slots=True)
class Entry:
    name: str
    tag: str
    digest: str
    when: str
    node: str  # that found it first

    @property
    def image(self) -> str:
        """As the nodes call it: two spellings of one image are one entry."""
        return reference.parse(f"{self.name}:{self.tag}").tagged


def read(file: Path) -> dict[str, Entry]:
    """By image; empty before the first start. A file that is no such list is refused by name."""
    source, entries = lock_file.entries(file, KEY, Entry.__slots__, Entry)
    for number, entry in enumerate(entries):
        if source and not reference.DIGEST.fullmatch(entry.digest):
            raise source.refusal(
                (KEY, number), f"'{entry.digest}' is no digest; expected sha256: and 64 hex digits", "bad-lock"
            )
    return {entry.image: entry for entry in entries}


def digests(file: Path) -> dict[str, str]:
    return {image: entry.digest for image, entry in read(file).items()}


def at(image: str, known: Mapping[str, str]) -> str:
    """The image with its digest, where one is known; the tag stays, for people."""
    digest = "" if "@" in image else known.get(reference.parse(image).tagged, "")
    return f"{image}@{digest}" if digest else image


def keep(file: Path, entry: Entry) -> bool:
    """Adds it or takes its image's place; tells whether the digest differed."""
    answers.require(answers.DIGEST, entry.digest, entry.node)
    known = read(file)
    before = known.get(entry.image)
    if before and before.digest == entry.digest:
        return False
    rows = sorted({**known, entry.image: entry}.values(), key=lambda one: one.image)
    lock_file.write(file, KEY, [asdict(row) for row in rows])
    return True
