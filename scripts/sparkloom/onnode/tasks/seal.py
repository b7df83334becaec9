"""Keep an engine's compiled kernels where its pod only reads.

Copies the cache that an engine writes to a folder beside it, and points `current` there. Every pod starts with that
copy, so what is written to the cache later is not executed by the next one. The cache is an engine's to write, so
nothing in it is followed. Links are copied as links, and what is neither a file nor a folder nor a link is left out.
A copy that does not fit leaves what was sealed before, with a warning.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypedDict

from sparkloom.onnode.task import Task

CURRENT = "current"
SPARE = 8 * 2**30  # bytes that stay free on the disk
DEEPEST = 40  # folders within each other
PIECE = 1 << 24


class DoesNotFit(Exception):
    """In words."""


@contextmanager
def folder(name: str | Path, within: int | None = None) -> Iterator[int]:
    """Open, and not where a link leads."""
    opened = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=within)
    try:
        yield opened
    finally:
        os.close(opened)


class Copier:
    """From one open folder to another; counts what it took."""

    def __init__(self, free: int) -> None:
        self.free, self.files, self.bytes = free, 0, 0

    def folder(self, source: int, target: int, depth: int = 0) -> None:
        if depth > DEEPEST:
            raise DoesNotFit(f"more than {DEEPEST} folders lie within each other")
        for name in sorted(os.listdir(source)):
            with suppress(FileNotFoundError):  # a compiler's own, gone meanwhile
                self._entry(name, source, target, depth)

    def _entry(self, name: str, source: int, target: int, depth: int) -> None:
        kind = os.stat(name, dir_fd=source, follow_symlinks=False).st_mode
        if stat.S_ISLNK(kind):
            os.symlink(os.readlink(name, dir_fd=source), name, dir_fd=target)
        elif stat.S_ISDIR(kind):
            with folder(name, source) as inner:
                os.mkdir(name, 0o755, dir_fd=target)
                with folder(name, target) as outer:
                    self.folder(inner, outer, depth + 1)
        elif stat.S_ISREG(kind):
            self._file(name, source, target)

    def _file(self, name: str, source: int, target: int) -> None:
        # Not to be led elsewhere, nor kept waiting by a pipe, by whoever changes the entry at this moment.
        with os.fdopen(os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=source), "rb") as inner:
            known = os.fstat(inner.fileno())
            if not stat.S_ISREG(known.st_mode):
                return
            made = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, known.st_mode & 0o755, dir_fd=target)
            with os.fdopen(made, "wb", buffering=0) as outer:
                while piece := inner.read(PIECE):
                    self.bytes += len(piece)
                    if self.bytes > self.free:
                        raise DoesNotFit(f"{self.free / 2**30:.1f} GiB may be used, and it is more")
                    outer.write(piece)
                os.utime(outer.fileno(), ns=(known.st_atime_ns, known.st_mtime_ns))  # builders go by its age
            self.files += 1


def seal(cache: Path, sealed: Path, mark: str) -> Copier:
    """The copy is complete before anything points to it."""
    sealed.mkdir(mode=0o755, exist_ok=True)
    before = {path for path in sealed.iterdir() if path.name != CURRENT}
    place = next(path for number in range(100) if (path := sealed / f"{mark}.{number}") not in before)
    part = sealed / "part"
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(mode=0o755)
    copier = Copier(max(0, shutil.disk_usage(sealed).free - SPARE))
    try:
        with folder(cache) as inner, folder(part) as outer:
            copier.folder(inner, outer)
    except (DoesNotFit, OSError):
        shutil.rmtree(part)
        raise
    part.rename(place)
    link = sealed / "next"
    link.unlink(missing_ok=True)
    link.symlink_to(place.name)
    link.replace(sealed / CURRENT)
    for path in before:
        shutil.rmtree(path, ignore_errors=True)
    return copier


def sealed_as(sealed: Path) -> str:
    """The mark of what is sealed; empty where nothing is."""
    try:
        return (sealed / CURRENT).readlink().name.rpartition(".")[0] if (sealed / CURRENT).is_dir() else ""
    except OSError:
        return ""


class Kernels(TypedDict):
    cache: str  # the folder that the engine writes
    sealed: str  # the folder for the copies
    mark: str  # what the copy belongs to; one of the same mark is kept


def main(
    task: Task,
    kernels: Kernels,
    again: bool = False,  # replace a copy of the same mark too
) -> None:
    cache, sealed, mark = Path(kernels["cache"]), Path(kernels["sealed"]), kernels["mark"]
    if not cache.is_dir():  # nobody ran here
        task.exit_json(files=0, bytes=0)
    if sealed_as(sealed) == mark and not again:
        task.exit_json()
    if task.check_mode:
        task.exit_json(changed=True)
    try:
        copier = seal(cache, sealed, mark)
    except (DoesNotFit, OSError) as error:
        task.warn(f"the kernels in {cache} are not sealed, so what is written there later is executed: {error}")
        task.exit_json()
    task.exit_json(changed=True, files=copier.files, bytes=copier.bytes)
