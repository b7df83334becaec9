"""A backup of what was there before the first change: one record per thing, until an undo has put it back.

A thing without a record was never changed, so an undo leaves it alone.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sparkloom.onnode.task import Data

# Named before this module was: what earlier releases kept there can still be put back.
FOLDER = Path("/var/lib/sparkloom/origin")


@dataclass(frozen=True)
class File:
    content: bytes
    mode: int = 0o644
    owner: tuple[int, int] | None = None  # whoever writes it


def read(path: Path) -> File | None:
    try:
        facts = path.stat()
        return File(path.read_bytes(), stat.S_IMODE(facts.st_mode), (facts.st_uid, facts.st_gid))
    except FileNotFoundError:
        return None


def put(path: Path, file: File | None) -> None:
    """Whole or not at all. The scratch name is always the same: what a killed run left, the next one writes over."""
    if file is None:
        path.unlink(missing_ok=True)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(f".{path.name}.sparkloom")
    with os.fdopen(os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as stream:
        os.fchmod(stream.fileno(), file.mode)
        if file.owner:
            with contextlib.suppress(PermissionError):  # not root
                os.fchown(stream.fileno(), *file.owner)
        stream.write(file.content)
        stream.flush()
        os.fsync(stream.fileno())
    scratch.replace(path)


def write(path: Path, content: str | bytes, mode: int) -> None:
    put(path, File(content.encode() if isinstance(content, str) else content, mode))


def _place(kind: str, name: str) -> Path:
    return FOLDER / f"{kind}-{name.strip('/').replace('/', '!')}.json"


def load(kind: str, name: str) -> Any:
    try:
        return json.loads(_place(kind, name).read_text())
    except FileNotFoundError:
        return None


def save(kind: str, name: str, record: Data) -> None:
    FOLDER.mkdir(parents=True, exist_ok=True, mode=0o700)
    write(_place(kind, name), json.dumps(record, indent=1), 0o600)


def forget(kind: str, name: str) -> None:
    """The record goes last; with the last record goes the folder."""
    _place(kind, name).unlink(missing_ok=True)
    for folder in (FOLDER, FOLDER.parent):
        with contextlib.suppress(OSError):
            folder.rmdir()


def diff(path: Path, before: str, after: str) -> Data:
    """A file's change as Ansible shows it."""
    return {"before": before, "after": after, "before_header": str(path), "after_header": str(path)}


def keep_file(path: Path) -> None:
    """Remember a file's bytes, permissions and owner, or that it was not there, and which folders were missing."""
    if holds_file(path):
        return
    record: Data = {"folders": [str(p) for p in path.parents if not p.exists()]}
    if was := read(path):
        record |= {"content": base64.b64encode(was.content).decode(), "mode": was.mode, "owner": was.owner}
    save("file", str(path), record)


def holds_file(path: Path) -> bool:
    """Whether there is something to put back."""
    return load("file", str(path)) is not None


def to_restore(paths: Iterable[Path]) -> list[Path]:
    """In the order that leaves no folder behind: a file that came with its folder goes last, when that is empty."""
    return sorted(paths, key=lambda path: len((load("file", str(path)) or {}).get("folders", ())))


def kept_file(path: Path) -> File | None:
    """As it was before; none for a file that was not there, or that nothing is known of."""
    record = load("file", str(path)) or {}
    if "content" not in record:
        return None
    return File(base64.b64decode(record["content"]), record["mode"], tuple(record["owner"]))


def matches_file(path: Path) -> bool:
    """Whether the file is, byte for byte, what it was before; also where nothing is known of it."""
    if not holds_file(path):
        return True
    now, was = read(path), kept_file(path)
    return now is was is None or bool(now and was and (now.content, now.mode) == (was.content, was.mode))


def restore_file(path: Path, *, forget_it: bool = True) -> None:
    record = load("file", str(path))
    if record is None:
        return
    put(path, kept_file(path))
    if "content" not in record:
        for folder in record["folders"]:  # the deepest first; one that others use since then stays
            with contextlib.suppress(OSError):
                Path(folder).rmdir()
    if forget_it:
        forget("file", str(path))
