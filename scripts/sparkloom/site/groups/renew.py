"""Ranks that read another plan than was applied are made anew: their annotation is right, their files are not.

A pod that is made while somebody's edit stands keeps the edited files for as long as it lives, and its set sees no
reason to renew it. What a rank has read, only the rank can say.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sparkloom.onnode.now.pods import State
from sparkloom.site.client import Client

TIMES = 2  # a rank is made anew; one that still reads something else is an error of ours, not of a moment
ASKED = 5  # times in vain; then what cannot be asked is left alone
EVERY = 3.0
CURE = "does somebody else apply this profile's ConfigMaps?"
NO_PLAN = "is no plan of a group"  # what onnode/rank/main.py says of a file that it cannot read


class Readings:
    """`wanted` is the hash that each rank should tell; empty for what was applied without one."""

    def __init__(self, source: Client, wanted: str, say: Callable[[str], None]) -> None:
        self.source, self.wanted, self.say = source, wanted, say
        self.right: set[str] = set()  # pods, by their uid
        self._renewed: dict[str, int] = {}  # by rank
        self._asked: dict[str, tuple[int, float]] = {}
        self._going: set[str] = set()

    def current(self, states: list[State], now: float) -> list[State]:
        """The states without those of pods that go; a pod counts as ready only once it told what it read."""
        return [self._judged(one, now) for one in states if one.uid not in self._going] if self.wanted else states

    def stubborn(self) -> str:
        """The rank that read something else each time, or nothing."""
        return next((rank for rank, times in self._renewed.items() if times > TIMES), "")

    def _judged(self, one: State, now: float) -> State:
        if one.uid in self.right:
            return one
        if NO_PLAN in one.last_words and not one.ready:
            self._renew(one, "no plan at all")
        elif one.phase == "Running" and not one.reason:
            self._ask(one, now)
        return one if one.uid in self.right else replace(one, ready=False)

    def _ask(self, one: State, now: float) -> None:
        times, at = self._asked.get(one.uid, (0, -EVERY))
        if now - at < EVERY:
            return
        self._asked[one.uid] = (times + 1, now)
        read = str((self.source.report(one.pod) or {}).get("read") or "")
        if read == self.wanted or (not read and times + 1 >= ASKED):
            self.right.add(one.uid)
        elif read:
            self._renew(one, f"plan {read}")

    def _renew(self, one: State, found: str) -> None:
        self._renewed[one.rank] = self._renewed.get(one.rank, 0) + 1
        self._going.add(one.uid)
        if self._renewed[one.rank] <= TIMES:
            self.say(f"rank {one.rank} on {one.node}: read {found}, applied is {self.wanted}; its pod is made anew")
            self.source.delete_pod(one.pod)
