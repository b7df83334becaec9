"""Content-keyed artefacts: CACHE/<step>-<key>, written aside and renamed, so that a kill never leaves half of one."""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from testbed.base import names
from testbed.base.shell import run

KEEP = 2  # generations of one step kept: switching a branch back and forth rebuilds nothing

Part = str | bytes | Path


def key_of(parts: Iterable[Part]) -> str:
    """Hash of texts, and of files and whole trees (names, modes' execute bits and contents)."""
    digest = hashlib.sha256()
    for part in parts:
        for piece in _pieces(part):
            digest.update(len(piece).to_bytes(8, "big") + piece)
    return digest.hexdigest()[:12]


def _pieces(part: Part) -> Iterator[bytes]:
    if isinstance(part, bytes):
        yield part
    elif isinstance(part, str):
        yield part.encode()
    elif part.is_dir():
        for path in sorted(p for p in part.rglob("*") if not p.is_dir() and "__pycache__" not in p.parts):
            yield path.relative_to(part).as_posix().encode()
            yield from _file(path)
    else:
        yield part.name.encode()
        yield from _file(part)


def _file(path: Path) -> Iterator[bytes]:
    if path.is_symlink():
        yield b"link " + str(path.readlink()).encode()
    else:
        yield b"x" if path.stat().st_mode & 0o100 else b"-"
        yield path.read_bytes()


def place(step: str, key: str) -> Path:
    return names.CACHE / f"{step}-{key}"


@contextmanager
def building(step: str, key: str) -> Iterator[Path]:
    """A folder to build into; it becomes the artefact only when the block ends well."""
    target = place(step, key)
    work = names.CACHE / f".{step}-{key}.part"
    remove_tree(work)
    work.mkdir(parents=True)
    yield work
    (work / ".built").write_text(time.strftime("%Y-%m-%d %H:%M:%S"))
    os.sync()
    work.rename(target)
    _forget_old(step, target)


def is_built(step: str, key: str) -> bool:
    return (place(step, key) / ".built").exists()


def touch(step: str, key: str) -> None:
    os.utime(place(step, key))


def remove_tree(path: Path) -> None:
    """rm -rf that never enters another file system: what a killed build left mounted below is unmounted first."""
    if path.is_dir() and not path.is_symlink():
        for place in reversed(mounts_below(path)):
            run(["umount", place])
        run(["rm", "-rf", "--one-file-system", path])
    elif path.exists() or path.is_symlink():
        path.unlink()


def mounts_below(path: Path) -> list[Path]:
    """Where something is mounted below a folder, in the order of mounting."""
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    places = [Path(re.sub(r"\\(\d{3})", lambda o: chr(int(o[1], 8)), line.split()[4])) for line in lines]
    return [place for place in places if place.is_relative_to(path.resolve())]


def _forget_old(step: str, newest: Path) -> None:
    length = len(f"{step}-") + 12
    for half in names.CACHE.glob(f".{step}-????????????.part"):  # of runs that were killed and never typed again
        remove_tree(half)
    older = [p for p in names.CACHE.glob(f"{step}-????????????") if len(p.name) == length and p != newest]
    for old in sorted(older, key=lambda p: p.stat().st_mtime, reverse=True)[KEEP - 1 :]:
        remove_tree(old)


def read_json(path: Path) -> dict[str, dict[str, object]]:
    try:
        data = json.loads(path.read_text())
    except (FileNotFoundError, ValueError):
        return {}
    return data if isinstance(data, dict) else {}


def write_json(path: Path, data: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    aside.write_text(json.dumps(data, indent=1, sort_keys=True) + "\n")
    aside.replace(path)
