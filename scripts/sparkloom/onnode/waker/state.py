"""What is known of one group: what the last look found, and what no look shows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from sparkloom.onnode.waker.groups_file import Group

HOLD = 60.0  # seconds after a failed waking in which no other is begun

Phase = Literal["unknown", "asleep", "waking", "awake", "going", "failed"]
PHASES: tuple[Phase, ...] = ("unknown", "asleep", "waking", "awake", "going", "failed")
Use = Literal["used", "perhaps", "idle"]  # since the last look; `perhaps` alone holds it awake, and is no use yet


class Seen(NamedTuple):
    """One look at a group: StatefulSets that want a pod, pods that are there, what its rank 0 says, and whether the
    routers' health checks know that it is ready."""

    up: int
    pods: int
    ready: bool
    down: str  # why its supervisor starts nothing any more
    at: float
    routed: bool = True


class Act(NamedTuple):
    verb: Literal["wake", "sleep"]
    name: str


@dataclass
class State:
    group: Group
    used: float
    seen: Seen | None = None
    use: Use = "used"
    waiting: int = 0
    wanted: float | None = None  # since when somebody wants it awake
    begun: float | None = None  # since when it starts
    ending: bool = False  # told to go; no look has shown it yet
    failure: str = ""
    failed: float = 0.0
    hold: float = HOLD
    took: float | None = None  # seconds of the last waking
    counts: dict[str, int] = field(default_factory=lambda: {"ready": 0, "failed": 0, "slept": 0})

    @property
    def up(self) -> bool:
        return bool(self.seen and self.seen.up) and not self.ending

    @property
    def ready(self) -> bool:
        return self.up and bool(self.seen and self.seen.ready)

    @property
    def reached(self) -> bool:
        """A request that the router sends to its engine gets there."""
        return self.ready and bool(self.seen and self.seen.routed)

    @property
    def partial(self) -> bool:
        return self.up and bool(self.seen and self.seen.up < len(self.group.sets))

    @property
    def gone(self) -> bool:
        """Asleep for certain."""
        return self.seen is not None and not self.seen.up and not self.seen.pods

    @property
    def phase(self) -> Phase:
        if self.seen is None:
            return "unknown"
        if self.ready:
            return "awake"
        if self.up:
            return "failed" if self.failure else "waking"
        return "asleep" if self.gone else "going"
