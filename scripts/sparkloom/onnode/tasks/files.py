"""Write several small files in one run.

Writes root-owned files whose content the controller rendered; atomic, with check mode and diff. With `remember` the
node keeps what was there before the first change, and `undo` puts exactly that back.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, NotRequired, TypedDict

from sparkloom.onnode.host import backup
from sparkloom.onnode.task import Data, Task


class File(TypedDict):
    path: str  # Where.
    content: NotRequired[str]  # The whole file; default ''
    src: NotRequired[str]  # In place of content; a file of the role's `files`, read on the controller.
    program: NotRequired[str]  # In place of content; a program of ours, packed on the controller.
    encoding: NotRequired[Literal["text", "base64"]]  # How the content is given; default 'text'
    mode: NotRequired[str]  # Octal permissions; default '0644'
    secret: NotRequired[bool]  # Its content is never shown; default false


def described(path: Path, before: backup.File | None, after: backup.File | None) -> Data:
    """Permissions that differ stand in the diff's heads: content alone would show nothing."""
    told = backup.diff(path, shown(before), shown(after))
    if before and after and before.mode != after.mode:
        told |= {"before_mode": f"{before.mode:04o}", "after_mode": f"{after.mode:04o}"}
    return told


def shown(file: backup.File | None) -> str:
    """An archive has no lines to compare, and a hash to tell it by."""
    content = file.content if file else b""
    if content.startswith(b"PK"):
        return f"a program, sha256 {hashlib.sha256(content).hexdigest()[:12]}\n"
    return content.decode(errors="replace")


def hidden(secrets: Mapping[str, str]) -> list[File]:
    return [{"path": path, "content": text, "mode": "0600", "secret": True} for path, text in secrets.items()]


def present(task: Task, files: Sequence[File], changed: list[str], diffs: list[Data], *, keep: bool = False) -> None:
    for entry in files:
        path, mode = Path(entry["path"]), int(entry.get("mode", "0644"), 8)
        said, encoded = entry.get("content", ""), entry.get("encoding") == "base64"
        before, after = backup.read(path), backup.File(base64.b64decode(said) if encoded else said.encode(), mode)
        if before and (before.content, before.mode) == (after.content, mode):
            continue
        changed.append(str(path))
        hidden_before = replace(before or after, content=b"a secret\n")
        compared = (hidden_before, replace(after, content=b"another\n")) if entry.get("secret") else (before, after)
        diffs.append(described(path, *compared))
        if not task.check_mode:
            if keep:
                backup.keep_file(path)
            backup.put(path, after)


def main(
    task: Task,
    files: Sequence[File],  # what to write
    secrets: Mapping[str, Any] = {},  # path to content of more files; 0600, and never shown
    remember: bool = False,  # keep what was there before, for `undo`
) -> None:
    changed: list[str] = []
    diffs: list[Data] = []
    present(task, [*files, *hidden(secrets)], changed, diffs, keep=remember)
    task.exit_json(changed=bool(changed), paths=changed, diff=diffs)
