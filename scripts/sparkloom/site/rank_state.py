"""One rank as the cluster shows it, with what its supervisor said last."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class State:
    """One rank as it is now."""

    rank: str
    pod: str
    node: str
    phase: str
    reason: str
    ready: bool
    restarts: int
    last_words: str = ""
    image: str = ""  # digest of what really runs
    phase_said: str = ""  # by the rank's supervisor
    said: str = ""
    uid: str = ""
    again: str = ""  # what rank 0 said of a failure that came twice since this wait began
