"""Which groups are on demand: a file of a ConfigMap, read again when it is another."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

GROUPS = "groups.json"  # the file's name


@dataclass(frozen=True)
class Group:
    """`label`: its name in the cluster; `address`: its Service; `turn`: of groups that share a place, else empty."""

    name: str
    label: str
    model: str
    address: str
    sets: tuple[str, ...]
    idle_seconds: float
    turn: str
    load_seconds: float | None
    limit_seconds: float

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
