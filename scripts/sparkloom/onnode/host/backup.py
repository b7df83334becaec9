"""A backup of what was there before the first change: one record per thing, until an undo has put it back.

A thing without a record was never changed, so an undo leaves it alone.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import stat
from pathlib import Path
from typing import Any

from sparkloom.onnode.task import Data

# Named before this module was: what earlier releases kept there can still be put back.
FOLDER = Path("/var/lib/sparkloom/origin")


def _place(kind: str, name: str) -> Path:
    return FOLDER / f"{kind}-{name.strip('/').replace('/', '!')}.json"


def load(kind: str, name: str) -> Any:
    try:
        return json.loads(_place(kind, name).read_text())
    except FileNotFoundError:
        return None


def save(kind: str, name: str, record: Data) -> None:
    FOLDER.mkdir(parents=True, exist_ok=True, mode=0o700)
    _replace(_place(kind, name), json.dumps(record, indent=1).encode(), 0o600)


def forget(kind: str, name: str) -> None:
    """The record goes last; with the last record goes the folder."""
    _place(kind, name).unlink(missing_ok=True)
    for folder in (FOLDER, FOLDER.parent):
        with contextlib.suppress(OSError):
            folder.rmdir()


def write(path: Path, content: str | bytes, mode: int) -> None:
    """Whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    _replace(path, content.encode() if isinstance(content, str) else content, mode)


def diff(path: Path, before: str, after: str) -> Data:
    """A file's change as Ansible shows it."""
    return {"before": before, "after": after, "before_header": str(path), "after_header": str(path)}


def _replace(path: Path, content: bytes, mode: int, owner: tuple[int, int] | None = None) -> None:
    """Always the same scratch name: what a killed run left of it, the next one writes over and renames."""
    scratch = path.with_name(f".{path.name}.sparkloom")
    with os.fdopen(os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as stream:
        os.fchmod(stream.fileno(), mode)
        if owner:
            os.fchown(stream.fileno(), *owner)
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
    scratch.replace(path)


def keep_file(path: Path) -> None:
    """Remember a file's bytes, permissions and owner, or that it was not there, and which folders were missing."""
    if load("file", str(path)) is not None:
        return
    record: Data = {"folders": [str(p) for p in path.parents if not p.exists()]}
    if path.exists():
        facts = path.stat()
        content = base64.b64encode(path.read_bytes()).decode()
        record |= {"content": content, "mode": stat.S_IMODE(facts.st_mode), "owner": [facts.st_uid, facts.st_gid]}
    save("file", str(path), record)


def holds_file(path: Path) -> bool:
    """Whether there is something to put back."""
    return load("file", str(path)) is not None


def matches_file(path: Path) -> bool:
    """Whether the file is, byte for byte, what it was before; also where nothing is known of it."""
    record = load("file", str(path))
    if record is None:
        return True
    if not path.exists():
        return "content" not in record
    kept = base64.b64decode(record.get("content", ""))
    return "content" in record and path.read_bytes() == kept and stat.S_IMODE(path.stat().st_mode) == record["mode"]


def kept_content(path: Path) -> bytes | None:
    """The bytes of before; none for a file that was not there, or that nothing is known of."""
    record = load("file", str(path)) or {}
    return base64.b64decode(record["content"]) if "content" in record else None


def restore_file(path: Path, *, forget_it: bool = True) -> None:
    record = load("file", str(path))
    if record is None:
        return
    if "content" in record:
        path.parent.mkdir(parents=True, exist_ok=True)
        uid, gid = record["owner"]
        _replace(path, base64.b64decode(record["content"]), record["mode"], (uid, gid))
    else:
        path.unlink(missing_ok=True)
        for folder in record["folders"]:  # the deepest first; one that others use since then stays
            with contextlib.suppress(OSError):
                Path(folder).rmdir()
    if forget_it:
        forget("file", str(path))
