"""Which groups are on demand, and what is known of each: what the last look found, and what no look shows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

GROUPS = "groups.json"  # the file's name


@dataclass(frozen=True)
class Group:
    """`label`: its name in the cluster; `address`: its Service; `turn`: of groups that share a place, else empty;
    `proof`: the SHA-256 of its engine's own key, which the router shows."""

    name: str
    label: str
    model: str
    address: str
    sets: tuple[str, ...]
    idle_seconds: float
    turn: str
    load_seconds: float | None
    limit_seconds: float
    proof: str = ""

    @property
    def place(self) -> str:
        """Groups with the same one are never awake together."""
        return f"turn {self.turn}" if self.turn else f"group {self.name}"

    @classmethod
    def of(cls, told: Mapping[str, Any]) -> Group:
        load = told["load_seconds"]
        return cls(
            name=str(told["name"]),
            label=str(told["label"]),
            model=str(told["model"]),
            address=str(told["address"]),
            sets=tuple(map(str, told["sets"])),
            idle_seconds=float(told["idle_seconds"]),
            turn=str(told["turn"]),
            load_seconds=None if load is None else float(load),
            limit_seconds=float(told["limit_seconds"]),
            proof=str(told.get("proof", "")),
        )


class GroupsFile:
    """The kubelet swaps the folder whole, so a file of another inode or time is another."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._stamp: tuple[int, int, int] | None = None

    @property
    def known(self) -> bool:
        """It could be read once."""
        return self._stamp is not None

    def new(self) -> tuple[Group, ...] | None:
        """None while it is as it was; ValueError or OSError for a file that cannot be gone by."""
        found = self.path.stat()
        stamp = (found.st_ino, found.st_mtime_ns, found.st_size)
        if stamp == self._stamp:
            return None
        try:
            listed = tuple(Group.of(one) for one in json.loads(self.path.read_text())["groups"])
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"{type(error).__name__}: {error}") from None
        if len({one.name for one in listed}) < len(listed) or any(not one.sets for one in listed):
            raise ValueError("two groups of one name, or one without a StatefulSet")
        self._stamp = stamp
        return listed


HOLD = 60.0  # seconds after a failed waking in which no other is begun

Phase = Literal["unknown", "asleep", "waking", "awake", "going", "failed", "stopped"]
PHASES: tuple[Phase, ...] = ("unknown", "asleep", "waking", "awake", "going", "failed", "stopped")
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
    head: str = ""  # address of rank 0's pod, where there is one
    stopped: str = ""  # by whom and when: it starts for no request


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
    def stopped(self) -> str:
        return self.seen.stopped if self.seen else ""

    @property
    def phase(self) -> Phase:
        if self.seen is None:
            return "unknown"
        if self.stopped:
            return "stopped"
        if self.ready:
            return "awake"
        if self.up:
            return "failed" if self.failure else "waking"
        return "asleep" if self.gone else "going"
