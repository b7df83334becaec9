"""An archive of images that is brought to this node: taken in pieces, imported, held by the names that pods use.

It lies in a folder of root's until it is imported. A run that was cut off goes on where it ended: the file's name bears
its size and its time.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from sparkloom.onnode.images.pull import Pull
from sparkloom.onnode.images.runtime import ImageError, Runtime

MADE_UP = 'name~="^import-[0-9]{4}-[0-9]{2}-[0-9]{2}[@:]"'  # by ctr, for what has no name in an archive


class Import(Pull):
    """In the background as a pull is; what is pulled is a file here."""

    waiting = "importing"

    def words(self) -> list[str]:
        return self.runtime.importing(self.reference)


def begun(file: Path, size: int) -> dict[str, Any]:
    """How much of it is here. What it will need must be free: the rest of it, its layers, and these unpacked."""
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    have = file.stat().st_size if file.exists() else 0
    if have > size:
        file.unlink()
        have = 0
    free, wanted = shutil.disk_usage(file.parent).free, size - have + 2 * size
    if free < wanted:
        raise ImageError(
            f"{file.parent} has {free / 1e9:.1f} GB free, {file.name} needs {wanted / 1e9:.1f} GB (the file, its "
            "layers and these unpacked); make room there"
        )
    return {"have": have}


def forgotten(runtime: Runtime, file: Path) -> None:
    """The file, and the names that ctr made up for what was in it."""
    runtime.remove(list(runtime.digests(MADE_UP)))
    file.unlink(missing_ok=True)
