"""What a store's files may be called. Each name has one function that judges it; no path is made of anything else.

A manifest comes from a hub, a folder, a disk or another node, and root on every node makes files by it.
"""

from __future__ import annotations

import re

COMMIT = re.compile(r"[0-9a-f]{40}")
SHA256 = re.compile(r"[0-9a-f]{64}")
BLOB = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")  # git's hash of a small file, the sha256 of a large one
PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,95}")
SCRATCH = re.compile(r"\..*\.new")  # what the store itself calls a name that is about to be replaced
LONGEST = 512  # characters of a path
PIECE = 240  # bytes of one folder's or file's name: 255 less what a scratch name adds
DEEPEST = 16


class StoreError(Exception):
    """One sentence: what was found, what was expected, what to change."""


def shown(text: object, most: int = 120) -> str:
    """Foreign words in a sentence of ours: on one line, without control characters, not without end."""
    plain = "".join(letter if letter.isprintable() else "?" for letter in str(text)[: most + 1])
    return plain if len(plain) <= most else f"{plain[:most]}..."


def _matching(text: object, pattern: re.Pattern[str], what: str) -> str:
    if isinstance(text, str) and pattern.fullmatch(text):
        return text
    raise StoreError(f"'{shown(text)}' is no {what}")


def commit(text: object) -> str:
    """What a snapshot's folder is called."""
    return _matching(text, COMMIT, "commit: expected 40 hexadecimal digits")


def blob(text: object) -> str:
    """What the hub cache calls a file's content."""
    return _matching(text, BLOB, "blob: expected 40 or 64 hexadecimal digits")


def sha256(text: object) -> str:
    return _matching(text, SHA256, "sha256: expected 64 hexadecimal digits")


def model(text: object) -> str:
    """org/name. Two hyphens stand for the slash in folders' names, so they are in no name."""
    parts = text.split("/") if isinstance(text, str) else []
    if len(parts) == 2 and all(PART.fullmatch(part) and ".." not in part and "--" not in part for part in parts):
        return str(text)
    raise StoreError(f"'{shown(text)}' is no model's name; write org/name")


def file_path(text: object) -> str:
    """A file's path inside a snapshot: it can lead nowhere else."""
    if isinstance(text, str) and 0 < len(text) <= LONGEST and text.isprintable():
        parts = text.split("/")
        if len(parts) <= DEEPEST and all(_plain(part) for part in parts):
            return text
    raise StoreError(f"'{shown(text)}' is no path in a snapshot")


def _plain(part: str) -> bool:
    return part not in {"", ".", ".."} and len(part.encode()) <= PIECE and not SCRATCH.fullmatch(part)
