"""The lock file of a site, beside its inventory: what was found at the first deploy, and holds from then on.

Images' digests and models' commits stand in it, a list each; either is written without touching the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import yaml

from sparkloom.base import document, files
from sparkloom.base.document import Document
from sparkloom.base.errors import InputError

FILE = Path("group_vars", "all", "images.yml")
KEYS = ("image_lock", "model_lock")
HEAD = """\
---
# What each image's tag and each model's main meant here at the first deploy, as the nodes found it; site.yml writes it,
# and launches name the digest and the commit. Keep it with the inventory. To take another one:
# image_lock: -e serve_image=sha256:..., or =new for what the nodes mean by the tag now.
# model_lock: -e model_store_update=true for the hub's main, -e model_store_accept=held for what the nodes hold.
"""
E = TypeVar("E")


class _Indented(yaml.SafeDumper):
    """Lists below their key: it is a person's inventory, and their yamllint reads it too."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)


def place(inventory: str | Path) -> Path:
    return Path(inventory) / FILE


def entries(file: Path, key: str, fields: Iterable[str], made: Callable[..., E]) -> tuple[Document | None, list[E]]:
    """Those of one list, and the document to point at; none before the first deploy. What is no lock is refused."""
    if not file.is_file():
        return None, []
    read = document.load(file)
    names = tuple(fields)
    try:
        if not set(read.data) & set(KEYS):
            raise KeyError(key)
        found = [made(**{name: str(entry[name]) for name in names}) for entry in read.data.get(key, [])]
    except (KeyError, TypeError, AttributeError):
        message = f"expected '{key}:' with {', '.join(names)} in each entry; remove the file to have it anew"
        raise InputError.single(str(file), message, rule="bad-lock") from None
    return read, found


def write(file: Path, key: str, rows: list[dict[str, Any]]) -> None:
    kept: Mapping[str, Any] = document.load(file).data if file.is_file() else {}
    data = {name: rows if name == key else kept[name] for name in KEYS if name == key or name in kept}
    files.write(file, HEAD + yaml.dump(data, Dumper=_Indented, sort_keys=False, width=200))
