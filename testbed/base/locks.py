"""Who may change what at a time: one command per rack, and one on this machine for what all racks share.

Taken in this order: the rack's lock, then the shared one, then that of an artefact, so that two commands never wait for
each other."""

from __future__ import annotations

import fcntl
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from testbed.base import names


def _path(rack: str) -> Path:
    return names.CACHE / f"lock-{rack}"


def _taken(file: IO[str]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextmanager
def _held(path: Path, waiting: str) -> Iterator[None]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        if not _taken(file):
            print(f"      waiting: {waiting}", file=sys.stderr, flush=True)
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextmanager
def rack() -> Iterator[None]:
    """Nodes, rails and state of this rack."""
    with _held(_path(names.CLUSTER), f"another command changes the rack {names.CLUSTER}"):
        yield


@contextmanager
def shared() -> Iterator[None]:
    """The cache, Docker's configuration, the kernel's limits."""
    with _held(names.CACHE / "lock", "another rack builds or configures what all racks share"):
        yield


@contextmanager
def machines() -> Iterator[None]:
    """The virtual machines: their cache and their state."""
    with _held(names.CACHE / "vm-lock", "another command of the virtual machines"):
        yield


@contextmanager
def making(name: str) -> Iterator[None]:
    """One kept artefact, which tests side by side and a rack may all want at once."""
    with _held(names.CACHE / f".making-{name}", f"another command makes {name}"):
        yield


def others_at_work() -> bool:
    """Whether a command of another rack is under way."""
    for path in names.CACHE.glob("lock-*"):
        if path != _path(names.CLUSTER):
            with path.open("w") as file:
                if not _taken(file):
                    return True
    return False
