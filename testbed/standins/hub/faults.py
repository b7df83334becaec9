"""How the hub misbehaves, and what it counted while it did."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from fnmatch import fnmatch


@dataclass
class Faults:
    """Each is off by default. File names are patterns, so `*00002*` hits one shard."""

    rate: int = 0  # bytes per second over all connections; 0 = as fast as it goes
    cut_after: int = 0  # the connection is dropped after this many bytes of one answer
    cut_times: int = 1  # so often, then the hub behaves
    corrupt: str = ""  # one byte of this file is flipped in every answer
    corrupt_at: int = 1 << 16
    missing: str = ""  # listed, but 404 when asked for

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._due = time.monotonic()

    def is_missing(self, path: str) -> bool:
        return bool(self.missing) and fnmatch(path, self.missing)

    def spoilt(self, path: str, size: int) -> int | None:
        """Offset of the flipped byte in this file."""
        hit = bool(self.corrupt) and fnmatch(path, self.corrupt)
        return min(self.corrupt_at, size - 1) if hit and size else None

    def allowance(self, remaining: int) -> int:
        """How many bytes this answer may carry before its connection is cut."""
        with self._lock:
            if self.cut_after and self.cut_times and remaining > self.cut_after:
                self.cut_times -= 1
                return self.cut_after
        return remaining

    def pace(self, sent: int) -> None:
        if not self.rate:
            return
        with self._lock:
            self._due = max(self._due, time.monotonic() - 0.05) + sent / self.rate
            wait = self._due - time.monotonic()
        if wait > 0:
            time.sleep(wait)


@dataclass
class Counters:
    """What went out; tests read it as /_stats."""

    requests: int = 0
    with_token: int = 0
    bytes: int = 0
    by_path: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._lock = threading.Lock()

    def asked(self, token: bool) -> None:
        with self._lock:
            self.requests += 1
            self.with_token += token

    def sent(self, path: str, size: int) -> None:
        with self._lock:
            self.bytes += size
            self.by_path[path] = self.by_path.get(path, 0) + size

    def as_dict(self) -> dict[str, object]:
        counted = {"requests": self.requests, "with_token": self.with_token}
        return {**counted, "bytes": self.bytes, "by_path": self.by_path}
