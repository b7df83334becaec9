"""Files that are whole or not there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sparkloom.base.errors import InputError


def write(path: Path, content: str | bytes, mode: int = 0o644) -> Path:
    """Written aside, with its mode from the first byte, and renamed: nobody ever sees or keeps a half."""
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with os.fdopen(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as stream:
            os.fchmod(stream.fileno(), mode)
            stream.write(content.encode() if isinstance(content, str) else content)
            stream.flush()
            os.fsync(stream.fileno())
        return aside.replace(path)
    except OSError as error:  # a full disk names no file, and the half would stay
        aside.unlink(missing_ok=True)
        raise OSError(error.errno, error.strerror, str(path)) from None


@contextmanager
def writable(place: Path, cure: str) -> Iterator[None]:
    """Around what writes where somebody said: a place that takes nothing is unusable input, and `cure` helps."""
    try:
        yield
    except OSError as error:
        message = f"cannot be written: {error.strerror}; {cure}"
        raise InputError.single(str(place), message, rule="unwritable") from None
