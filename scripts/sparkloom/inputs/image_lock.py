"""What each image's tag meant when it was first served at a site: a file beside the inventory, one entry per image.

A tag can come to mean another image between two nodes' pulls, or between two evenings. A launch names the digest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import yaml

from sparkloom.base import document, files
from sparkloom.base.errors import InputError
from sparkloom.onnode.images import reference

FILE = Path("group_vars", "all", "images.yml")
KEY = "image_lock"
HEAD = """\
---
# What each image's tag means here, as the nodes found it; playbooks/serve.yml writes it, and launches name the digest.
# Keep it with the inventory. Another digest: -e serve_image=sha256:..., or =new for what the nodes mean by the tag now.
"""


class _Indented(yaml.SafeDumper):
    """Lists below their key: it is a person's inventory, and their yamllint reads it too."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)


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


def place(inventory: str | Path) -> Path:
    return Path(inventory) / FILE


def read(file: Path) -> dict[str, Entry]:
    """By image; empty before the first start. A file that is no such list is refused by name."""
    if not file.is_file():
        return {}
    read = document.load(file)
    try:
        entries = [Entry(**{key: str(entry[key]) for key in Entry.__slots__}) for entry in read.data[KEY]]
    except (KeyError, TypeError):
        message = (
            f"expected '{KEY}:' with name, tag, digest, when and node in each entry; remove the file to have it anew"
        )
        raise InputError.single(str(file), message, rule="bad-lock") from None
    for number, entry in enumerate(entries):
        if not reference.DIGEST.fullmatch(entry.digest):
            raise read.refusal(
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
    known = read(file)
    before = known.get(entry.image)
    if before and before.digest == entry.digest:
        return False
    rows = sorted({**known, entry.image: entry}.values(), key=lambda one: one.image)
    data: Mapping[str, Any] = {KEY: [asdict(row) for row in rows]}
    files.write(file, HEAD + yaml.dump(data, Dumper=_Indented, sort_keys=False, width=200))
    return True
