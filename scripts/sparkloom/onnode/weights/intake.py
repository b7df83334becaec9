"""One file on its way in: written, hashed and readable by the next node at the same time."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable
from pathlib import Path

from sparkloom.onnode.weights import check
from sparkloom.onnode.weights.layout import Entry
from sparkloom.onnode.weights.names import StoreError

FLUSH = 256 << 20  # written out in steps: gigabytes of unwritten pages would stall the disk at the end


class Spoilt(StoreError):
    """The content has another hash than it should."""


class Intake:
    """Bytes arrive in order through `write`; `available` lets a reader follow. The part outlives this process."""

    def __init__(self, entry: Entry, final: Path, verified: int | None = None, number: int = 0) -> None:
        self.entry, self.final, self._verified, self.number = entry, final, verified, number
        self.part = final.with_name(f"{final.name}.part")
        self.have = self.moved = self.generation = 0
        self.done = False
        self._changed = threading.Condition()
        self._hash = hashlib.sha256()
        self._file = -1
        self._flushed = 0

    def adopt(self) -> bool:
        """True when the whole file is here already and its hash is right: known, or read once more. Moves nothing."""
        if not self.final.exists() or check.fault(self.final, self.entry, self._verified):
            return False
        self._advance(self.entry.size, done=True)
        return True

    def open(self) -> None:
        """Go on behind what an earlier run left: that is read once for its hash, not fetched again."""
        if self._file >= 0:
            return
        self.final.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.open(self.part, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
        kept = min(os.fstat(self._file).st_size, self.entry.size)
        buffer, position = bytearray(check.PIECE), 0
        view = memoryview(buffer)
        while position < kept:
            size = os.preadv(self._file, [view[: min(len(view), kept - position)]], position)
            if not size:
                break
            self._hash.update(view[:size])
            position += size
        os.ftruncate(self._file, position)
        os.lseek(self._file, position, os.SEEK_SET)
        self._flushed = position
        self._advance(position)

    def write(self, piece: bytes | memoryview) -> int:
        view = memoryview(piece)
        if self.have + len(view) > self.entry.size:
            raise Spoilt(f"{self.entry.path}: more than the {self.entry.size} bytes that the manifest says")
        self._hash.update(view)
        rest = view
        while rest:
            rest = rest[os.write(self._file, rest) :]
        self.moved += len(view)
        self._advance(self.have + len(view))
        if self.have - self._flushed >= FLUSH:
            os.fdatasync(self._file)
            self._flushed = self.have
        return len(view)

    def drain(self, read_into: Callable[[memoryview], int | None]) -> None:
        """All that a source still gives."""
        view = memoryview(bytearray(check.PIECE))
        while size := read_into(view):
            self.write(view[:size])

    def restart(self) -> None:
        """Start over; whoever followed the old content is told by the generation."""
        with self._changed:
            self.have, self.generation = 0, self.generation + 1
            self._hash = hashlib.sha256()
            os.ftruncate(self._file, 0)
            os.lseek(self._file, 0, os.SEEK_SET)
            self._flushed = 0
            self._changed.notify_all()

    def finish(self) -> None:
        """Judge the whole, write it out, give it its name, and take it out of memory."""
        sha256 = self._hash.hexdigest()
        if self.have != self.entry.size or sha256 != self.entry.sha256:
            what = f"sha256 {sha256} over {self.have} bytes"
            self.restart()
            raise Spoilt(f"{self.entry.path}: {what}, expected {self.entry.sha256} over {self.entry.size}")
        os.fdatasync(self._file)
        self.part.replace(self.final)
        check.forget(self._file)
        os.close(self._file)
        self._file = -1
        self._advance(self.have, done=True)

    def available(self, position: int, generation: int, patience: float) -> int:
        """How many bytes are there, waiting until it is more than `position`; -1 when it was started over."""
        with self._changed:
            self._changed.wait_for(lambda: self.have > position or self.generation != generation, patience)
            return self.have if self.generation == generation else -1

    def _advance(self, have: int, *, done: bool = False) -> None:
        with self._changed:
            self.have, self.done = have, done
            self._changed.notify_all()
