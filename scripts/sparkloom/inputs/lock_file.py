"""The lock file of a site, beside its inventory: what was found at the first deploy, and holds from then on.

A tag can come to mean another image between two nodes' pulls, and a publisher may change what a model's main means,
its code included. A launch names the digest and the commit. Each kind has a list; one is written without touching the
other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import yaml

from sparkloom.base import document, files
from sparkloom.base.errors import InputError
from sparkloom.inputs import answers
from sparkloom.onnode.images import reference

FILE = Path("group_vars", "all", "images.yml")
HEAD = """\
---
# What each image's tag and each model's main meant here at the first deploy, as the nodes found it; site.yml writes it,
# and launches name the digest and the commit. Keep it with the inventory. To take another one:
# image_lock: -e serve_image=sha256:..., or =new for what the nodes mean by the tag now.
# model_lock: -e model_store_update=true for the hub's main, -e model_store_accept=held for what the nodes hold.
"""


@dataclass(frozen=True, slots=True)
class Image:
    """Which digest a tag meant when it was first served here."""

    KEY: ClassVar = "image_lock"
    KIND: ClassVar = answers.DIGEST
    name: str
    tag: str
    digest: str
    when: str
    node: str  # that found it first

    @property
    def of(self) -> str:
        """As the nodes call it: two spellings of one image are one entry."""
        return reference.parse(f"{self.name}:{self.tag}").tagged

    @property
    def meant(self) -> str:
        return self.digest


@dataclass(frozen=True, slots=True)
class Model:
    """Which commit a model without a revision of its own was at when it was first brought here."""

    KEY: ClassVar = "model_lock"
    KIND: ClassVar = answers.COMMIT
    id: str
    commit: str
    when: str
    node: str  # that had it first

    @property
    def of(self) -> str:
        return self.id

    @property
    def meant(self) -> str:
        return self.commit


KEYS = (Image.KEY, Model.KEY)
E = TypeVar("E", Image, Model)


def place(inventory: str | Path) -> Path:
    return Path(inventory) / FILE


def read(file: Path, kind: type[E]) -> dict[str, E]:
    """By image, or by model; empty before the first deploy. What is no such list is refused by name."""
    if not file.is_file():
        return {}
    source = document.load(file)
    try:
        if not set(source.data) & set(KEYS):
            raise KeyError(kind.KEY)
        listed = source.data.get(kind.KEY, [])
        entries = [kind(**{name: str(entry[name]) for name in kind.__slots__}) for entry in listed]
    except (KeyError, TypeError, AttributeError):
        names = ", ".join(kind.__slots__)
        message = f"expected '{kind.KEY}:' with {names} in each entry; remove the file to have it anew"
        raise InputError.single(str(file), message, rule="bad-lock") from None
    for number, entry in enumerate(entries):
        if not kind.KIND.form.fullmatch(entry.meant):
            message = f"'{entry.meant}' is no {kind.KIND.name.split()[-1]}; expected {kind.KIND.expected}"
            message += ", or remove the entry to have it anew"
            raise source.refusal((kind.KEY, number), message, "bad-lock")
    return {entry.of: entry for entry in entries}


def meanings(file: Path, kind: type[E]) -> dict[str, str]:
    """The digests of images, or the commits of models."""
    return {name: entry.meant for name, entry in read(file, kind).items()}


def at(image: str, known: Mapping[str, str]) -> str:
    """The image with its digest, where one is known; the tag stays, for people."""
    digest = "" if "@" in image else known.get(reference.parse(image).tagged, "")
    return f"{image}@{digest}" if digest else image


def keep(file: Path, entry: Image | Model) -> bool:
    """Adds it or takes its predecessor's place; tells whether what is meant differed."""
    answers.require(entry.KIND, entry.meant, entry.node)
    known: dict[str, Any] = {**read(file, type(entry))}
    if entry.of in known and known[entry.of].meant == entry.meant:
        return False
    known[entry.of] = entry
    kept: Mapping[str, Any] = document.load(file).data if file.is_file() else {}
    lists = {**kept, entry.KEY: [asdict(known[name]) for name in sorted(known)]}
    data = {name: lists[name] for name in KEYS if name in lists}
    files.write(file, HEAD + yaml.dump(data, Dumper=document.Dumper, sort_keys=False, width=200))
    return True
